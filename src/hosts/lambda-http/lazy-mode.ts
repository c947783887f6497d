import { lazy } from "../../base/process/lazy.ts";
import type { ExecutionMode } from "./middleware.ts";

type Handler = (event: unknown, context: unknown, options?: unknown) => unknown;

/** What Middy calls a mode with, and what it gets: its types say `() => void`. */
type Mode = (
  tools: unknown,
  befores: unknown,
  handler: Handler,
  afters: unknown,
  onErrors: unknown,
  plugin: unknown,
) => Handler;

/**
 * A Middy execution mode that is loaded with the first invocation: what a function imports is what its cold start waits
 * for, and Lambda can have the first event ready meanwhile. A load that failed is tried again.
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
