import type { Writable } from "node:stream";
import type { Context } from "aws-lambda";
import { lazy } from "../../base/process/lazy.ts";

/** Middy passes a signal in the options. */
export type MiddyHandler = (event: unknown, context: unknown, options?: unknown) => unknown;

export type MiddyHook = (request: MiddyRequest) => unknown;

export interface MiddyRequest {
  readonly event: unknown;
  readonly context: unknown;
  readonly error?: unknown;
}

export interface MiddyPlugin {
  timeoutEarly: boolean;
  /** Time between the early timeout and the function's timeout, in milliseconds. */
  readonly timeoutEarlyInMillis: number;
  timeoutEarlyResponse(): unknown;
  requestStart(request: MiddyRequest): void;
  requestEnd(request: MiddyRequest): unknown;
}

/** Middy's private protocol. Only {@link lazyMode} knows the order of the arguments. */
interface MiddyTools {
  middyRequest(event: unknown, context: unknown): MiddyRequest;
  runRequest(
    request: MiddyRequest,
    befores: readonly MiddyHook[],
    handler: MiddyHandler,
    afters: readonly MiddyHook[],
    onErrors: readonly MiddyHook[],
    plugin: MiddyPlugin,
  ): Promise<unknown>;
}

/** Middy function as its execution mode sees it. `use` may add hooks to the lists at any time. */
export interface MiddyFunction extends MiddyParts {
  readonly afters: readonly MiddyHook[];
  readonly plugin: MiddyPlugin;
  request(event: unknown, context: unknown): MiddyRequest;
  /** Runs a request through the given parts and the function's own `after` hooks. */
  run(request: MiddyRequest, parts: MiddyParts): Promise<unknown>;
}

export interface MiddyParts {
  readonly befores: readonly MiddyHook[];
  readonly handler: MiddyHandler;
  readonly onErrors: readonly MiddyHook[];
}

/** Creates the function that Lambda invokes. `stream` takes the response of a streaming function. */
export type Mode = (
  middy: MiddyFunction,
) => (event: unknown, context: unknown, stream?: ResponseStream) => Promise<unknown>;

/** Response stream of Lambda's Node runtimes: not a Node stream, but with these members of one. */
export interface ResponseStream
  extends Pick<Writable, "write" | "end" | "destroy" | "on" | "off" | "writableFinished"> {}

/** Lambda's marker of streaming functions, which calls them with the stream as second argument. */
export type Streamify = <
  Function extends (event: unknown, stream: ResponseStream, context: unknown) => Promise<unknown>,
>(
  streaming: Function,
) => Function;

/** Function that Lambda invokes. Middy adds its methods. */
interface Invoked {
  (...given: never[]): Promise<unknown>;
  handler?(replacement: MiddyHandler): Invoked;
}

/**
 * Creates a Middy execution mode that is loaded at the first invocation, because a cold start waits
 * for all imports of a function. The next invocation retries a failed load.
 *
 * @param streamify - marks the function as one that streams. Default: it returns its response.
 */
export function lazyMode(load: () => Promise<Mode>, streamify?: Streamify): ExecutionMode {
  const mode = (
    tools: MiddyTools,
    befores: readonly MiddyHook[],
    initialHandler: MiddyHandler,
    afters: readonly MiddyHook[],
    onErrors: readonly MiddyHook[],
    plugin: MiddyPlugin,
  ) => {
    let current = initialHandler;
    const loaded = lazy(async () =>
      (await load())({
        befores,
        handler: (event, context, options) => current(event, context, options),
        afters,
        onErrors,
        plugin,
        request: (event, context) => tools.middyRequest(event, context),
        run: (request, parts) =>
          tools.runRequest(request, parts.befores, parts.handler, afters, parts.onErrors, plugin),
      }),
    );
    const invoke = (event: unknown, context: unknown, stream?: ResponseStream) =>
      loaded.value === undefined
        ? loaded.open().then((run) => run(event, context, stream))
        : loaded.value(event, context, stream);
    const lazyHandler: Invoked =
      streamify === undefined
        ? (event: unknown, context: unknown) => invoke(event, context)
        : streamify((event, stream, context) => invoke(event, context, stream));
    lazyHandler.handler = (replacement: MiddyHandler) => {
      current = replacement;
      return lazyHandler;
    };
    return lazyHandler;
  };
  // Safe: Middy types a mode as `() => void`, but calls it with the six arguments above.
  return mode as unknown as ExecutionMode;
}

// These types repeat Middy's own, which import a package that hardly any project has installed and
// therefore cannot appear in public types.

/** Request that Middy passes to a middleware. */
export interface MiddlewareRequest<Event = unknown, Result = unknown> {
  event: Event;
  context: Context;
  response: Result | null | undefined;
  earlyResponse?: Result | null | undefined;
  error: Error | null | undefined;
  internal: Record<string, unknown>;
}

/** Middleware that `use` accepts, from Middy's own packages or any other. */
export interface Middleware<Event = unknown, Result = unknown> {
  before?(request: MiddlewareRequest<Event, Result>): unknown;
  after?(request: MiddlewareRequest<Event, Result>): unknown;
  onError?(request: MiddlewareRequest<Event, Result>): unknown;
  name?: string;
}

/** Middleware typed for another event or result. TypeScript does not check whether it fits. */
export interface ForeignMiddleware {
  readonly before?: (request: never) => unknown;
  readonly after?: (request: never) => unknown;
  readonly onError?: (request: never) => unknown;
}

/**
 * Lambda function with Middy's methods for adding middlewares. Each method returns the function
 * itself.
 */
export interface WithMiddlewares<Event, Result> {
  (event: Event, context: Context, options?: unknown): Promise<Result>;
  use(middlewares: Middleware<Event, Result> | readonly Middleware<Event, Result>[]): this;
  use(middlewares: ForeignMiddleware | readonly ForeignMiddleware[]): this;
  before(middleware: (request: MiddlewareRequest<Event, Result>) => unknown): this;
  after(middleware: (request: MiddlewareRequest<Event, Result>) => unknown): this;
  onError(middleware: (request: MiddlewareRequest<Event, Result>) => unknown): this;
}

/** Value for the `executionMode` option of a Middy function. Only Middy calls it. */
export type ExecutionMode = () => void;
