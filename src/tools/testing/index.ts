export type { JobMessage } from "../../parts/messages/job-message.ts";
export type { TestCallOptions } from "./call-handler.ts";
export { type Caller, type TestTokenOptions, testToken } from "./caller.ts";
export { type CrashScenario, type Cut, crashEverywhere } from "./crash-kit.ts";
export { CrashError, type Fault, type Faults } from "./faults.ts";
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
} from "./isolation-kit.ts";
export type { LambdaMessages, LambdaRows } from "./lambda-event.ts";
export {
  type LambdaContextOptions,
  type LambdaEvents,
  type LambdaTrigger,
  lambdaContext,
  lambdaEvent,
} from "./lambda-event.ts";
export type { LambdaGatewayRequest, LambdaRequest } from "./lambda-http-events.ts";
export type { RaceApp, RaceTenant } from "./race-app.ts";
export {
  type RaceAppOf,
  type RaceClients,
  RaceError,
  type RaceFrame,
  type RaceResult,
  type RaceScenario,
  raceEverywhere,
} from "./race-kit.ts";
export type { RaceMove } from "./race-search.ts";
export type { RaceDisturbances, RaceStep } from "./race-task.ts";
export {
  startTestApp,
  type TestApp,
  type TestAppOptions,
  type TestFetchOptions,
} from "./test-app.ts";
export type { TestClock } from "./test-clock.ts";
export type { SentDelivery } from "./test-process.ts";
export type { TestRow } from "./test-stack.ts";
