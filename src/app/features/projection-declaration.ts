import type { SharedEvent } from "../../parts/messages/envelope.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/** The `ctx` of a projection: what it does is the items that it returns. */
export type ProjectionContext = Omit<
  PipelineContext,
  "commit" | "publish" | "enqueue" | "delivery" | "request"
>;

/** What a projection is being written for. */
export interface ProjectionRun {
  /** The version: the declared one, or another that is still active. */
  readonly version: number;
}

/** A declared projection. */
export interface ProjectionDeclaration {
  readonly feature: string;
  readonly name: string;
  readonly version: number;
  /** By the type of the event. */
  readonly on: ReadonlyMap<
    string,
    (ctx: ProjectionContext, event: SharedEvent, projection: ProjectionRun) => unknown
  >;
}
