import { describeError } from "../../base/errors/describe.ts";
import type { Logger } from "../../base/log/logger.ts";
import { reply } from "../../parts/http/reply.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { ReadyCheck } from "../registry/declared-server.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { healthRoutes } from "./own-routes.ts";

const checkTimeoutMs = 2_000;
const cachedMs = 1_000;

type Results = Readonly<Record<string, "ok" | "failing">>;

/**
 * Creates a function that runs all ready checks in parallel, and keeps their results for a second.
 * It logs changes of their outcome.
 */
export function createReadyChecks({
  server: { checks },
  clock,
  lifecycle: { draining },
}: HealthParts): (log: Logger) => Promise<Results> {
  const report = createReport();
  let last: { readonly at: number; readonly results: Promise<Results> } | undefined;

  const runChecks = async (log: Logger): Promise<Results> => {
    const run = async ([name, check]: readonly [string, ReadyCheck]) => {
      const failure = await runCheck(check, draining);
      // A check that the drain aborted does not describe the resource.
      if (!draining.aborted) report(log, name, failure);
      return [name, failure === undefined ? "ok" : "failing"] as const;
    };
    return Object.fromEntries(await Promise.all([...checks].map(run)));
  };
  return (log) => {
    const now = clock.now();
    if (last === undefined || now - last.at > cachedMs || now < last.at)
      last = { at: now, results: runChecks(log) };
    return last.results;
  };
}

type HealthParts = Pick<Runtime, "server" | "clock" | "lifecycle">;

/**
 * Creates the health routes (specification 4.3). `/health/ready` is 503 while a check fails. While
 * the service starts or drains, it is 503 without running the checks.
 */
export function healthHandlers(parts: HealthParts): HandlerDeclaration[] {
  const { lifecycle } = parts;
  const results = createReadyChecks(parts);
  const ready: HandlerDeclaration["run"] = async ({ log }) => {
    const found = lifecycle.state === "running" ? await results(log) : {};
    // Reads the state again, because a drain that started during the checks has aborted them.
    const { state } = lifecycle;
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

type Failure = Pick<ReturnType<typeof describeError>["log"], "level" | "data">;

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

/** Creates a function that logs a check only when its outcome changes, not on every poll. */
function createReport(): (log: Logger, check: string, failure: Failure | undefined) => void {
  const known = new Map<string, string>();
  return (log, check, failure) => {
    if (failure === undefined) {
      if (known.delete(check)) log.info("health.check_recovered", { check });
      return;
    }
    const { level, data } = failure;
    // Numbers, such as durations and ports, differ in each poll.
    const message = String(data["message"]).replaceAll(/\d+/g, "0");
    const now = JSON.stringify([data["error"], message]);
    if (now === known.get(check)) return;
    known.set(check, now);
    log[level]("health.check_failed", { check, ...data });
  };
}
