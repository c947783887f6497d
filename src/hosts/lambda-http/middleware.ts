import type { Context } from "aws-lambda";

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
