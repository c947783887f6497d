import { lazy } from "../../base/process/lazy.ts";
import type { ExecutionMode } from "./middleware.ts";

type Handler = (event: unknown, context: unknown, options?: unknown) => unknown;

/** Actual signature of an execution mode, which Middy types as `() => void`. */
type Mode = (
  tools: unknown,
  befores: unknown,
  handler: Handler,
  afters: unknown,
  onErrors: unknown,
  plugin: unknown,
) => Handler;

/**
 * Creates a Middy execution mode that is loaded at the first invocation: a cold start waits for all
 * imports of a function, and Lambda can prepare the first event in that time. A failed load is
 * retried.
 */
export function lazyMode(load: () => Promise<ExecutionMode>): ExecutionMode {
  const mode: Mode = (tools, befores, initialHandler, ...rest) => {
    let handler = initialHandler;
    const loaded = lazy(async () => {
      const made = (await load()) as unknown as Mode;
      return made(
        tools,
        befores,
        (event, context, options) => handler(event, context, options),
        ...rest,
      );
    });
    const lazyHandler = (event: unknown, context: unknown) =>
      loaded.value === undefined
        ? loaded.open().then((run) => run(event, context))
        : loaded.value(event, context);
    lazyHandler.handler = (replacement: Handler) => {
      handler = replacement;
      return lazyHandler;
    };
    return lazyHandler;
  };
  return mode as unknown as ExecutionMode;
}
