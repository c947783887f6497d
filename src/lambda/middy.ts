export { ClaimLayer, type ClaimLayerOptions } from "../aws/claim-layer.ts";
export { type WriteOnceOptions, writeOnce } from "../middleware/write-once.ts";
export { type LegacyContext, type RequestScopeOptions, requestScope } from "./request-scope.ts";
