export { ClaimLayer } from "../aws/claim-layer.ts";
export type { ClaimLayerOptions } from "../aws/claim-layer-options.ts";
export type { DurableContextLike } from "../aws/durable-execution.ts";
export { type WriteOnceOptions, writeOnce } from "../middleware/write-once.ts";
export { type LegacyContext, type RequestScopeOptions, requestScope } from "./request-scope.ts";
