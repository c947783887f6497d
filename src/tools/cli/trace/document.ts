import type { TraceNode } from "./node.ts";
import type { Verdict } from "./verdict.ts";

/** Output of `keelson trace --json`. */
export interface TraceDocument extends Verdict {
  /** ID that the user requested. */
  readonly id: string;
  readonly roots: readonly TraceNode[];
  /** Number of nodes beyond the limits. */
  readonly leftOut: number;
  /** Files and tables that could not be read. */
  readonly notes: readonly string[];
  readonly logs: {
    /** Number of lines that belong to the ID. */
    readonly lines: number;
    /** Number of lines that mention the ID but cannot be parsed. */
    readonly broken: number;
  };
  /** Whether the command read the tables. */
  readonly tables: boolean;
}

/** Serializes the document as JSON. Escapes control characters, which could act on a terminal. */
export function jsonOf(document: TraceDocument): string {
  return JSON.stringify(document, undefined, 2).replaceAll(/[^\n\P{C}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
