import { loadedClaimLayer } from "../claim-layer/loaded-claim-layer.ts";

export type { DurableContextLike } from "../claim-layer/claim-invocation.ts";
export type { ClaimLayerOptions } from "../claim-layer/claim-layer-options.ts";
export type { ExecutionMode, Middleware, MiddlewareRequest } from "../lambda-http/lazy-mode.ts";
export type { RequestScopeOptions } from "./adopted-handler.ts";
export { type AdoptedContext, type LegacyContext, requestScope } from "./request-scope.ts";
export { type WriteOnceOptions, writeOnce } from "./write-once.ts";

/**
 * `ClaimLayer` of `keelson/claim-layer`, for code that imports it from `keelson/middy`. Its first
 * use throws if Powertools Idempotency is not installed, and always in a bundle, which does not
 * contain that module; code to be bundled imports `ClaimLayer` from `keelson/claim-layer`.
 */
export const ClaimLayer = /* @__PURE__ */ loadedClaimLayer();
