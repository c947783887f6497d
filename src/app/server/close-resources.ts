import type { Runtime } from "../runtime/runtime.ts";

/**
 * Closes the resources that the application registered, last registered first, and then the
 * adapters. Each gets an equal share of the time left. A resource that fails or hangs does not stop
 * the others.
 *
 * @returns whether all were closed.
 */
export async function closeResources(runtime: Runtime, limitMs: number): Promise<boolean> {
  const resources = [
    ...[...runtime.server.closers].reverse(),
    ["adapters", () => runtime.close()] as const,
  ];
  const endMs = Date.now() + limitMs;
  let isClean = true;
  for (const [index, [name, close]] of resources.entries()) {
    const shareMs = Math.max(0, endMs - Date.now()) / (resources.length - index);
    try {
      const isClosed = await within(
        shareMs,
        Promise.resolve(close()).then(() => true as const),
      );
      if (!isClosed) throw new Error(`it took longer than ${Math.round(shareMs)} ms`);
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
