export type { Fault, Faults } from "./faults.ts";
export { type Caller, startTestApp, type TestApp, type TestFetchOptions, type TestRow } from "./test-app.ts";
export type { TestClock } from "./test-clock.ts";
