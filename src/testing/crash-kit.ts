import { leaseMs, skewMs } from "../once/claim.ts";
import type { Server } from "../server/server.ts";
import { CrashError } from "./crash-error.ts";
import { startWatchedApp, type TestApp, type TestAppOptions } from "./test-app.ts";

/** What is cut at each of its calls. */
export interface CrashScenario<Result> extends TestAppOptions {
  /** Prepares an app; not cut. Default: nothing is prepared. */
  readonly arrange?: (app: TestApp) => Promise<void>;
  /**
   * What a client does, its retry included: the same request again, with the same `Idempotency-Key`. It throws, or
   * gives a response of 409 or of 500 and above, where a client would try again.
   */
  readonly act: (app: TestApp) => Promise<Result>;
  /** Throws where what the scenario promises does not hold. */
  readonly check: (app: TestApp, result: Result) => Promise<void>;
}

/** Where a scenario was cut. */
export interface Cut {
  readonly moment: "before" | "after";
  /** As DynamoDB and SSM name it: `TransactWriteItems`. */
  readonly operation: string;
  /** Which call of that operation, the first being 1. */
  readonly call: number;
}

/** How often a client tries again. */
const attempts = 5;

/**
 * Runs a scenario once as it is, and then once for each call of the store that it made, cut before the call, and
 * once more cut after it: the process crashes there, the client tries again once the lease of a dead process is
 * over, and what the scenario promises is checked. Each run has a stack of its own.
 *
 * @returns where it was cut.
 * @throws what `check` throws, naming the cut; Error where the scenario makes no call, or does not succeed after five attempts.
 * @example
 * const cuts = await crashEverywhere(server, {
 *   act: (app) => app.fetch("/files", { body, as: ann, headers: { "idempotency-key": "k1" } }),
 *   check: async (app) => expect(await namesOf(app)).toEqual(["a.txt"]),
 * });
 */
export async function crashEverywhere<Result>(server: Server, scenario: CrashScenario<Result>): Promise<readonly Cut[]> {
  const calls = await runWith(server, scenario, undefined);
  if (calls.length === 0) throw new Error("crashEverywhere: the scenario makes no call, so there is nowhere to cut it");
  const cuts = calls.flatMap((operation, index): Cut[] => {
    const call = calls.slice(0, index + 1).filter((other) => other === operation).length;
    return [
      { moment: "before", operation, call },
      { moment: "after", operation, call },
    ];
  });
  for (const cut of cuts) await runWith(server, scenario, cut);
  return cuts;
}

/** Runs the scenario on a stack of its own, and gives the calls of the first attempt. */
async function runWith<Result>(server: Server, scenario: CrashScenario<Result>, cut: Cut | undefined): Promise<string[]> {
  const { arrange, act, check, ...options } = scenario;
  const { app, sequence } = await startWatchedApp(server, options);
  try {
    await arrange?.(app);
    const before = sequence.length;
    if (cut !== undefined) app.faults[cut.moment](cut.operation, cut.call).crash();
    const result = await retried(app, act);
    const calls = sequence.slice(before);
    await check(app, result);
    return calls;
  } catch (error) {
    const where = cut === undefined ? "without a cut" : `cut ${cut.moment} call ${cut.call} of ${cut.operation}`;
    throw new Error(`crashEverywhere, ${where}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  } finally {
    await app.close();
  }
}

async function retried<Result>(app: TestApp, act: (app: TestApp) => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await act(app);
      if (!(result instanceof Response && isForAnotherTry(result.status)) || attempt === attempts) return result;
    } catch (error) {
      if (attempt === attempts || !(error instanceof CrashError || isForAnotherTry(statusOf(error)))) throw error;
    }
    app.clock.advance(leaseMs + skewMs + 1_000);
  }
}

function isForAnotherTry(status: number): boolean {
  return status === 409 || status >= 500;
}

function statusOf(error: unknown): number {
  const { status } = (error ?? {}) as { readonly status?: unknown };
  return typeof status === "number" ? status : 0;
}
