import { reply } from "../http/reply.ts";
import { access } from "../identity/access.ts";
import type { HandlerDeclaration } from "./handler.ts";
import type { Runtime } from "./runtime.ts";
import type { ReadyCheck } from "./server.ts";

const checkTimeoutMs = 2_000;
const cachedMs = 1_000;

/**
 * The health routes (specification 4.3): `/health/live` is 200 as long as the process answers,
 * `/health/ready` is 503 once the service drains or while a check fails.
 */
export function healthHandlers(runtime: Runtime): HandlerDeclaration[] {
  const { checks } = runtime.server;
  let last: { readonly at: number; readonly results: Promise<Record<string, "ok" | "failing">> } | undefined;

  const ready = async () => {
    const now = runtime.clock.now();
    if (last === undefined || now - last.at > cachedMs || now < last.at) last = { at: now, results: runChecks(checks) };
    const results = await last.results;
    const { state } = runtime.lifecycle;
    const isReady = state === "running" && !Object.values(results).includes("failing");
    return reply({ status: isReady ? "ready" : "unavailable", state, checks: results }, { status: isReady ? 200 : 503 });
  };
  return [
    declare("health.ready", "GET /health/ready", ready),
    declare("health.live", "GET /health/live", () => ({ status: "live" })),
  ];
}

function declare(name: string, route: string, run: () => unknown): HandlerDeclaration {
  return {
    kind: "query",
    feature: "keelson",
    name: `keelson.${name}`,
    input: undefined,
    output: undefined,
    route,
    access: access.everyone,
    body: "json",
    run,
  };
}

async function runChecks(checks: ReadonlyMap<string, ReadyCheck>): Promise<Record<string, "ok" | "failing">> {
  const results = await Promise.all([...checks].map(async ([name, check]) => [name, await runCheck(check)] as const));
  return Object.fromEntries(results);
}

async function runCheck(check: ReadyCheck): Promise<"ok" | "failing"> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, checkTimeoutMs, false);
  });
  try {
    return (await Promise.race([(async () => check())(), tooLate])) === false ? "failing" : "ok";
  } catch {
    return "failing";
  } finally {
    clearTimeout(timer);
  }
}
