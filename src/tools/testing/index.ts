export type { JobMessage } from "../../parts/messages/job-message.ts";
export type { TestCallOptions } from "./app/call-handler.ts";
export { type Caller, type TestTokenOptions, testToken } from "./app/caller.ts";
export { CrashError, type Fault, type Faults } from "./app/faults.ts";
export type { OthersEvent } from "./app/settle.ts";
export { startTestApp, type TestApp, type TestAppOptions } from "./app/test-app.ts";
export type { TestClock } from "./app/test-clock.ts";
export type { SentDelivery } from "./app/test-process.ts";
export type { TestFetchOptions } from "./app/test-request.ts";
export type { TestRow } from "./app/test-stack.ts";
export { type CrashScenario, type Cut, crashEverywhere } from "./crash-kit.ts";
export type { LambdaMessages, LambdaRows } from "./lambda-event.ts";
export {
  type LambdaContextOptions,
  type LambdaEvents,
  type LambdaTrigger,
  lambdaContext,
  lambdaEvent,
} from "./lambda-event.ts";
export type { LambdaGatewayRequest, LambdaRequest } from "./lambda-http-events.ts";
export {
  type IsolatedCaller,
  type IsolatedFetch,
  type IsolatedLambda,
  type Isolation,
  IsolationError,
  type IsolationInput,
  type IsolationScenario,
  type IsolationTarget,
  isolationOf,
  type Leak,
} from "./races/isolation-kit.ts";
export type { RaceApp, RaceTenant } from "./races/race-app.ts";
export { RaceError } from "./races/race-error.ts";
export {
  type RaceAppOf,
  type RaceClients,
  type RaceFrame,
  type RaceResult,
  type RaceScenario,
  raceEverywhere,
} from "./races/race-kit.ts";
export type { RaceMove } from "./races/search.ts";
export type { RaceDisturbances, RaceStep } from "./races/task.ts";
