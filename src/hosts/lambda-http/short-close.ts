import type { Runtime } from "../../app/runtime/runtime.ts";
import { closeResources } from "../../app/server/close-resources.ts";

/**
 * Time limit for the whole cleanup, in milliseconds. If Lambda sends SIGTERM at all, it kills the
 * process 300 to 500 ms later.
 */
const limitMs = 250;

const mark = Symbol.for("keelson.short-close");

type Bind = () => Promise<Runtime>;

interface ShortClose {
  (): void;
  readonly [mark]: Map<object, Bind>;
}

/**
 * Closes the resources of `owner` on SIGTERM, which Lambda sends if an extension is registered. One
 * listener per process holds the list of owners, so that no module has state.
 */
export function closeAtShutdown(owner: object, bind: Bind): void {
  if (process.env["AWS_LAMBDA_FUNCTION_NAME"] === undefined) return;
  const known = process.listeners("SIGTERM").find((listener) => mark in listener) as
    | ShortClose
    | undefined; // safe: only `shortClose` sets the mark
  const listener = known ?? shortClose();
  listener[mark].set(owner, bind);
  if (known === undefined) process.on("SIGTERM", listener);
}

function shortClose(): ShortClose {
  const owned = new Map<object, Bind>();
  let isClosing = false;
  const close = () => {
    if (isClosing) return;
    isClosing = true;
    void Promise.allSettled([...owned.values()].map(closeOne)).then(() => process.exit(0));
  };
  return Object.assign(close, { [mark]: owned });
}

/**
 * Closes one runtime: only its `onClose` resources and its adapters, because no work is in flight
 * between two invocations.
 */
async function closeOne(bind: Bind): Promise<void> {
  const startMs = performance.now();
  const runtime = await bind();
  runtime.lifecycle.drain();
  const clean = await closeResources(runtime, limitMs);
  runtime.metrics?.record("keelson.drains", 1, { "keelson.outcome": clean ? "clean" : "lossy" });
  runtime.metrics?.flush?.();
  runtime.log.info("shutdown.completed", {
    clean,
    exitCode: 0,
    totalMs: Math.round(performance.now() - startMs),
  });
}
