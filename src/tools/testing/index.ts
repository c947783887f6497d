export type { JobMessage } from "../../parts/messages/job-message.ts";
export type { TestCallOptions } from "./call-handler.ts";
export type { Caller } from "./caller.ts";
export { CrashError } from "./crash-error.ts";
export { type CrashScenario, type Cut, crashEverywhere } from "./crash-kit.ts";
export type { Fault, Faults } from "./faults.ts";
export { type LambdaContextOptions, lambdaContext } from "./lambda-context.ts";
export { type LambdaEvents, type LambdaTrigger, lambdaEvent } from "./lambda-event.ts";
export type { LambdaMessages, LambdaRows } from "./lambda-records.ts";
export type { LambdaGatewayRequest, LambdaRequest } from "./lambda-request.ts";
export type { SentDelivery } from "./recorded.ts";
export {
  startTestApp,
  type TestApp,
  type TestAppOptions,
  type TestFetchOptions,
} from "./test-app.ts";
export type { TestClock } from "./test-clock.ts";
export type { TestRow } from "./test-rows.ts";
export { type TestTokenOptions, testToken } from "./test-token.ts";
