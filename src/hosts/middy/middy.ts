import { loadedClaimLayer } from "../claim-layer/loaded-claim-layer.ts";

export type { ClaimLayerOptions } from "../claim-layer/claim-layer-options.ts";
export type { DurableContextLike } from "../claim-layer/durable-execution.ts";
export type { ExecutionMode, Middleware, MiddlewareRequest } from "../lambda-http/middleware.ts";
export { type WriteOnceOptions, writeOnce } from "../lambda-http/write-once.ts";
export type { RequestScopeOptions } from "./adopted-handler.ts";
export { type AdoptedContext, type LegacyContext, requestScope } from "./request-scope.ts";

/**
 * Class of `keelson/claim-layer`, for code that imports it from here. Its first use throws if
 * Powertools Idempotency is not installed, and in a bundle, which does not contain it: import it
 * from `keelson/claim-layer` there.
 */
export const ClaimLayer = /* @__PURE__ */ loadedClaimLayer();
