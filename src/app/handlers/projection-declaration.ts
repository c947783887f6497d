import type { SharedEvent } from "../../parts/messages/envelope.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/** The `ctx` of a projection, whose only effects are the items it returns. */
export type ProjectionContext = Omit<
  PipelineContext,
  "commit" | "publish" | "enqueue" | "delivery" | "request"
>;

/** Run of a projection for one of its versions. */
export interface ProjectionRun {
  /** Declared version, or another version that is still active. */
  readonly version: number;
}

export interface ProjectionDeclaration {
  readonly feature: string;
  readonly name: string;
  readonly version: number;
  /** By event type. */
  readonly on: ReadonlyMap<
    string,
    (ctx: ProjectionContext, event: SharedEvent, projection: ProjectionRun) => unknown
  >;
}
