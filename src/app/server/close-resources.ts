import type { Awaitable } from "../handlers/handler.ts";
import type { Runtime } from "../runtime/runtime.ts";

/**
 * Closes the resources that the application registered, last registered first, and then the
 * adapters. Each gets an equal share of the time left. A resource that fails or hangs does not stop
 * the others.
 *
 * @returns whether all were closed.
 */
export async function closeResources(
  runtime: Pick<Runtime, "server" | "log" | "close">,
  limitMs: number,
  options?: Parameters<Runtime["close"]>[0],
): Promise<boolean> {
  const resources = [
    ...[...runtime.server.closers].reverse(),
    ["adapters", () => runtime.close(options)] as const,
  ];
  const endMs = performance.now() + limitMs;
  let isClean = true;
  for (const [index, [name, close]] of resources.entries()) {
    try {
      await within(Math.max(0, endMs - performance.now()) / (resources.length - index), close());
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

function within(limitMs: number, work: Awaitable<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const message = `it took longer than ${Math.round(limitMs)} ms`;
  const timer = setTimeout(() => late.reject(new Error(message)), limitMs);
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}
