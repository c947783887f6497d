export type { DurableContextLike } from "./claim-invocation.ts";
export { ClaimLayer } from "./claim-layer.ts";
export type { ClaimLayerOptions } from "./claim-layer-options.ts";
