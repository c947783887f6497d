export { ClaimLayer } from "../claim-layer/claim-layer.ts";
export type { ClaimLayerOptions } from "../claim-layer/claim-layer-options.ts";
export type { DurableContextLike } from "../claim-layer/durable-execution.ts";
export type { RequestScopeOptions } from "./adopted-handler.ts";
export { type AdoptedContext, type LegacyContext, requestScope } from "./request-scope.ts";
export { type WriteOnceOptions, writeOnce } from "./write-once.ts";
