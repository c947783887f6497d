export type { ExecutionMode, Middleware, MiddlewareRequest } from "../lambda-http/lazy-mode.ts";
export type { RequestScopeOptions } from "./adopted-handler.ts";
export { type AdoptedContext, type LegacyContext, requestScope } from "./request-scope.ts";
export { type WriteOnceOptions, writeOnce } from "./write-once.ts";
