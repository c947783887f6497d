import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Returns a free port for a process that starts later. It is below the ports that kernels give to connections and to listeners
 * on port 0, because a test that runs at the same time might get one of those in the meantime.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const listener = createServer().listen(port);
    const isFree = await once(listener, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    listener.close();
    await once(listener, "close");
    return port;
  }
}
