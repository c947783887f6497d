import type { Server } from "../../app/server/server.ts";
import { CrashError, pastLeaseMs } from "./app/faults.ts";
import { startWatchedApp, type TestApp, type TestAppOptions } from "./app/test-app.ts";

/** Scenario that {@link crashEverywhere} interrupts at each of its calls to AWS. */
export interface CrashScenario<Result> extends TestAppOptions {
  /** Prepares the app. Calls of this step are not interrupted. Default: no preparation. */
  readonly arrange?: (app: TestApp) => Promise<void>;
  /**
   * Performs the client's work. The kit calls it again if it throws a {@link CrashError}, or returns or
   * throws 409 or 5xx. Give a request an `Idempotency-Key`, so that the retry has the same one.
   */
  readonly act: (app: TestApp) => Promise<Result>;
  /**
   * Throws if the scenario broke a guarantee. Runs again if the process crashes only now, because
   * `act` did not wait for the call; a response can then be read again.
   */
  readonly check: (app: TestApp, result: Result) => Promise<void>;
}

/** Point at which a scenario was interrupted by a crash. */
export interface Cut {
  readonly moment: "before" | "after";
  /** Name of the AWS operation, for example `TransactWriteItems`. */
  readonly operation: string;
  /** Number of the call among the calls of that operation, starting at 1. */
  readonly call: number;
}

/** A stack in this process uses the timers of Node, which a test may replace. */
const ownTimer = setTimeout;
/** Most attempts, including the first. */
const attempts = 5;

/**
 * Runs a scenario once without faults, then twice for each store call that it made: the process
 * crashes once before the call and once after it. After a crash, the client waits until the dead
 * process's lease has expired and retries; then `check` decides whether the guarantee held. Each
 * run has its own stack.
 *
 * @returns the points at which the scenario was interrupted.
 * @throws the error of `check`, with the {@link Cut} in the message; Error if the scenario does not
 * make a call, or fails five times.
 * @example
 * const cuts = await crashEverywhere(server, {
 *   act: (app) => app.fetch("/files", { body, as: ann, headers: { "idempotency-key": "k1" } }),
 *   check: async (app) => expect(await namesOf(app)).toEqual(["a.txt"]),
 * });
 */
export async function crashEverywhere<Result>(
  server: Server,
  scenario: CrashScenario<Result>,
): Promise<readonly Cut[]> {
  const calls = await runWith(server, scenario, undefined);
  if (calls.length === 0)
    throw new Error(
      "crashEverywhere: the scenario does not call a store, so there is no point at which to crash it",
    );
  const cuts = calls.flatMap((operation, index) => {
    const call = calls.slice(0, index + 1).filter((other) => other === operation).length;
    return (["before", "after"] as const).map((moment): Cut => ({ moment, operation, call }));
  });
  for (const cut of cuts) await runWith(server, scenario, cut);
  return cuts;
}

/** Crashes at `cut`. Returns the operations that `act` called. */
async function runWith<Result>(
  server: Server,
  scenario: CrashScenario<Result>,
  cut: Cut | undefined,
): Promise<string[]> {
  const { arrange, act, check, ...options } = scenario;
  const { app, sequence } = await startWatchedApp(server, {
    ...options,
    inProcess: setTimeout === ownTimer,
  });
  try {
    await arrange?.(app);
    const before = sequence.length;
    if (cut !== undefined) app.faults[cut.moment](cut.operation, cut.call).crash();
    const result = await retried(app, act);
    const calls = sequence.slice(before);
    await check(app, unread(result)).catch((error: unknown) => {
      if (!(error instanceof CrashError)) throw error;
      app.clock.advance(pastLeaseMs);
      return check(app, result);
    });
    return calls;
  } catch (error) {
    const where = cut ? `cut ${cut.moment} call ${cut.call} of ${cut.operation}` : "without a cut";
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`crashEverywhere, ${where}: ${message}`, { cause: error });
  } finally {
    await app.close();
  }
}

async function retried<Result>(app: TestApp, act: CrashScenario<Result>["act"]) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await act(app);
      if (attempt === attempts || !(result instanceof Response && isForAnotherTry(result)))
        return result;
    } catch (error) {
      if (attempt === attempts || !(error instanceof CrashError || isForAnotherTry(error)))
        throw error;
    }
    app.clock.advance(pastLeaseMs);
  }
}

/** A response can be read once only, and `check` may run twice. */
function unread<Result>(result: Result): Result {
  // Safe cast: the clone of a response has its type.
  return result instanceof Response ? (result.clone() as typeof result) : result;
}

function isForAnotherTry(answer: unknown) {
  // Safe cast: `status` stays `unknown`.
  const { status } = (answer ?? {}) as { readonly status?: unknown };
  return status === 409 || (typeof status === "number" && status >= 500);
}
