export type { ExecutionMode, Middleware, MiddlewareRequest } from "../lambda-http/lazy-mode.ts";
export type { RequestScopeOptions } from "./adopted-handler.ts";
export { type AdoptedContext, requestScope } from "./request-scope.ts";
export { type WriteOnceOptions, writeOnce } from "./write-once.ts";
