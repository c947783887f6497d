import type { Runtime } from "../app/runtime.ts";
import type { ContainerServer } from "./http-server.ts";
import type { Workers } from "./workers.ts";

/** How long the phases of a shutdown may take, in milliseconds. */
export interface ShutdownTimes {
  /** How long requests are still accepted, for balancers to notice. */
  readonly lingerMs: number;
  /** How long requests in flight may take to finish. */
  readonly drainMs: number;
}

/** The times of specification 8. */
export const shutdownTimes: ShutdownTimes = Object.freeze({ lingerMs: 3_000, drainMs: 30_000 });

const closeLimitMs = 5_000;
const sweepMs = 100;

/**
 * Drains: readiness fails and requests are still served while balancers take notice, then the
 * listener closes and requests in flight finish (specification 3.1). Resolves to whether none
 * had to be cut off.
 */
export async function drain(
  runtime: Runtime,
  { http, connections }: ContainerServer,
  { lingerMs, drainMs }: ShutdownTimes,
): Promise<boolean> {
  runtime.lifecycle.drain();
  await delay(lingerMs);
  const closed = new Promise<true>((resolve) => {
    http.close(() => resolve(true));
  });
  // A connection may fall idle only now: the one of a response that had begun before.
  const sweep = setInterval(connections.closeIdle, sweepMs);
  connections.closeIdle();
  const isDrained = await within(drainMs, closed).finally(() => clearInterval(sweep));
  if (!isDrained) {
    runtime.log.error("shutdown.requests_cut_off", { afterMs: drainMs });
    http.closeAllConnections();
  }
  return isDrained;
}

/** Waits for what the workers are at. Resolves to whether none had to be left: its message comes again elsewhere. */
export async function finish(runtime: Runtime, workers: Workers, limitMs = closeLimitMs): Promise<boolean> {
  const isFinished = await within(
    limitMs,
    workers.finished().then(() => true as const),
  );
  if (!isFinished) runtime.log.error("shutdown.workers_cut_off", { afterMs: limitMs });
  return isFinished;
}

/** Closes what the application registered, last first, then the adapters. One that fails or hangs does not stop the rest. */
export async function closeResources(runtime: Runtime, limitMs = closeLimitMs): Promise<boolean> {
  const resources = [...runtime.server.closers].reverse();
  let isClean = true;
  for (const [name, close] of [...resources, ["adapters", () => runtime.close()] as const]) {
    try {
      const isClosed = await within(
        limitMs,
        Promise.resolve(close()).then(() => true as const),
      );
      if (!isClosed) throw new Error(`it took longer than ${limitMs} ms`);
    } catch (error) {
      isClean = false;
      runtime.log.error("shutdown.close_failed", {
        resource: name,
        message: error instanceof Error ? error.message : String(error),
      });
    }
  }
  return isClean;
}

function within(limitMs: number, work: Promise<true>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  return Promise.race([work, tooLate]).finally(() => clearTimeout(timer));
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
