/** What was under way when a process of a test crashed: `app.faults.before(…).crash()`. */
export class CrashError extends Error {
  override readonly name = "CrashError";

  constructor() {
    super("the process crashed (armed by the test)");
  }
}
