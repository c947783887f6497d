/**
 * Error that every call in flight throws when a test crashes its app with
 * `app.faults.before(…).crash()`.
 */
export class CrashError extends Error {
  override readonly name = "CrashError";

  constructor() {
    super("the process crashed (armed by the test)");
  }
}
