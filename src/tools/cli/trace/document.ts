import type { TraceNode } from "./node.ts";
import type { Verdict } from "./verdict.ts";

/** What `keelson trace --json` prints. */
export interface TraceDocument extends Verdict {
  /** What was asked for. */
  readonly id: string;
  readonly roots: readonly TraceNode[];
  /** How many things more belong to it than are told. */
  readonly leftOut: number;
  /** What could not be read or asked. */
  readonly notes: readonly string[];
  readonly logs: {
    /** Lines that belong to it. */
    readonly lines: number;
    /** Lines that mention it and cannot be read. */
    readonly broken: number;
  };
  /** Whether the tables were asked. */
  readonly tables: boolean;
}

/** The document as JSON in which nothing can act on a terminal. */
export function jsonOf(document: TraceDocument): string {
  return JSON.stringify(document, undefined, 2).replaceAll(/[^\n\P{C}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
