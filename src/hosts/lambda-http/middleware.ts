import type { Context } from "aws-lambda";

// Middy's own types cannot be in public ones: they import a package that hardly anybody has installed.

/** What Middy calls a middleware with. */
export interface MiddlewareRequest<Event = unknown, Result = unknown> {
  event: Event;
  context: Context;
  response: Result | null | undefined;
  earlyResponse?: Result | null | undefined;
  error: Error | null | undefined;
  internal: Record<string, unknown>;
}

/** A middleware, of Middy's own packages or any other: what `use` takes. */
export interface Middleware<Event = unknown, Result = unknown> {
  before?(request: MiddlewareRequest<Event, Result>): unknown;
  after?(request: MiddlewareRequest<Event, Result>): unknown;
  onError?(request: MiddlewareRequest<Event, Result>): unknown;
  name?: string;
}

/** A middleware whose types are of another event or result: only when it runs is it known whether it fits. */
export interface ForeignMiddleware {
  readonly before?: (request: never) => unknown;
  readonly after?: (request: never) => unknown;
  readonly onError?: (request: never) => unknown;
}

/** A function that Lambda calls, with Middy's methods for adding middlewares. Each returns the function itself. */
export interface WithMiddlewares<Event, Result> {
  (event: Event, context: Context, options?: unknown): Promise<Result>;
  use(middlewares: Middleware<Event, Result> | readonly Middleware<Event, Result>[]): this;
  use(middlewares: ForeignMiddleware | readonly ForeignMiddleware[]): this;
  before(middleware: (request: MiddlewareRequest<Event, Result>) => unknown): this;
  after(middleware: (request: MiddlewareRequest<Event, Result>) => unknown): this;
  onError(middleware: (request: MiddlewareRequest<Event, Result>) => unknown): this;
}

/** How Middy runs a function: the `executionMode` of its options. Only Middy calls it. */
export type ExecutionMode = () => void;
