export { ClaimLayer } from "./claim-layer.ts";
export type { ClaimLayerOptions } from "./claim-layer-options.ts";
export type { DurableContextLike } from "./durable-execution.ts";
