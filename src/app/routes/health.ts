import { describeError } from "../../base/errors/describe.ts";
import { access } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import { reply } from "../../parts/http/reply.ts";
import type { HandlerDeclaration } from "../features/handler.ts";
import type { ReadyCheck } from "../registry/declared-server.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { ownQuery } from "./own-query.ts";

const checkTimeoutMs = 2_000;
const cachedMs = 1_000;

type Results = Readonly<Record<string, "ok" | "failing">>;

/**
 * The health routes (specification 4.3): `/health/live` is 200 as long as the process answers,
 * `/health/ready` is 503 while a check fails, and at once, without asking any, while the service does not run: it starts or drains.
 */
export function healthHandlers(runtime: Runtime): HandlerDeclaration[] {
  const { checks } = runtime.server;
  const report = createReport();
  let last: { readonly at: number; readonly results: Promise<Results> } | undefined;

  const results = (log: Logger): Promise<Results> => {
    const now = runtime.clock.now();
    if (last === undefined || now - last.at > cachedMs || now < last.at) {
      last = {
        at: now,
        results: runChecks(checks, runtime.lifecycle.draining, (name, failure) =>
          report(log, name, failure),
        ),
      };
    }
    return last.results;
  };
  const ready: HandlerDeclaration["run"] = async ({ log }) => {
    const found = runtime.lifecycle.state === "running" ? await results(log) : {};
    // Asked again: a drain that began meanwhile has ended the checks.
    const { state } = runtime.lifecycle;
    const isReady = state === "running" && !Object.values(found).includes("failing");
    const body = {
      status: isReady ? "ready" : "unavailable",
      state,
      checks: state === "running" ? found : {},
    };
    return reply(body, { status: isReady ? 200 : 503 });
  };
  const [readyRoute, liveRoute] = healthRoutes;
  return [
    { ...readyRoute, run: ready },
    { ...liveRoute, run: () => ({ status: "live" }) },
  ];
}

/** The routes of {@link healthHandlers}. */
export const healthRoutes = [
  ownQuery("health.ready", "GET /health/ready", access.everyone),
  ownQuery("health.live", "GET /health/live", access.everyone),
] as const;

/** Why a check failed, for the log. */
type Failure = Pick<ReturnType<typeof describeError>["log"], "level" | "data">;

/** Is told what became of each check. */
type Told = (name: string, failure: Failure | undefined) => void;

async function runChecks(
  checks: ReadonlyMap<string, ReadyCheck>,
  draining: AbortSignal,
  told: Told,
): Promise<Results> {
  const run = async ([name, check]: readonly [string, ReadyCheck]) => {
    const failure = await runCheck(check, draining);
    // What the drain has ended says nothing of the resource.
    if (!draining.aborted) told(name, failure);
    return [name, failure === undefined ? "ok" : "failing"] as const;
  };
  return Object.fromEntries(await Promise.all([...checks].map(run)));
}

/** Runs a check until its time is over, or the process drains. */
async function runCheck(check: ReadyCheck, draining: AbortSignal): Promise<Failure | undefined> {
  const ended = Promise.withResolvers<typeof tooLate>();
  const end = () => ended.resolve(tooLate);
  const timer = setTimeout(end, checkTimeoutMs);
  draining.addEventListener("abort", end);
  try {
    const result = await Promise.race([(async () => check())(), ended.promise]);
    if (result === tooLate) return failure(`it took longer than ${checkTimeoutMs} ms`);
    return result === false ? failure("it returned false") : undefined;
  } catch (error) {
    return describeError(error, { requestId: "", environment: "production" }).log;
  } finally {
    clearTimeout(timer);
    draining.removeEventListener("abort", end);
  }
}

const tooLate = Symbol("too late");

function failure(message: string): Failure {
  return { level: "error", data: { message } };
}

/** Logs what has changed since a check was last run, and not what every poll finds again. */
function createReport(): (log: Logger, name: string, failure: Failure | undefined) => void {
  const known = new Map<string, string>();
  return (log, name, failure) => {
    const before = known.get(name);
    if (failure === undefined) {
      if (known.delete(name)) log.info("health.check_recovered", { check: name });
      return;
    }
    const now = sortOf(failure);
    if (now === before) return;
    known.set(name, now);
    log[failure.level]("health.check_failed", { check: name, ...failure.data });
  };
}

/** What makes two failures one: their numbers, durations and ports for example, differ with every poll. */
function sortOf({ data }: Failure): string {
  return JSON.stringify([data["error"], String(data["message"]).replaceAll(/\d+/g, "0")]);
}
