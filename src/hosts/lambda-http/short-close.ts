import type { Runtime } from "../../app/runtime/runtime.ts";
import { closeResources } from "../../app/server/close-resources.ts";

/** How long everything may take, in milliseconds: where Lambda sends SIGTERM at all, it kills 300 to 500 ms later. */
const limitMs = 250;

const mark = Symbol.for("keelson.short-close");

type Bind = () => Promise<Runtime>;

interface ShortClose {
  (): void;
  /** What is closed, by what it belongs to. */
  readonly [mark]: Map<object, Bind>;
}

/**
 * Closes what belongs to `owner` when the process is told to end, which Lambda does where an extension is registered. There is
 * one listener a process, which keeps the list of what to close, so that no module does.
 */
export function closeAtShutdown(owner: object, bind: Bind): void {
  if (process.env["AWS_LAMBDA_FUNCTION_NAME"] === undefined) return;
  const known = process.listeners("SIGTERM").find((listener) => mark in listener) as
    | ShortClose
    | undefined; // safe: it has the mark
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

/** Not more than what `onClose` named and the adapters: nothing is under way between two invocations. */
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
