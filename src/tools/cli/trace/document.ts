import type { TraceNode } from "./node.ts";
import type { Verdict } from "./verdict.ts";

export interface TraceDocument extends Verdict {
  readonly id: string;
  readonly roots: readonly TraceNode[];
  /** Number of nodes beyond the limits. */
  readonly leftOut: number;
  /** Messages about lines and tables that could not be read. */
  readonly notes: readonly string[];
  readonly logs: {
    readonly lines: number;
    readonly broken: number;
  };
  readonly tables: boolean;
}

/** Escapes control characters, which could act on a terminal. */
export function jsonOf(document: TraceDocument): string {
  return JSON.stringify(document, undefined, 2).replaceAll(/[^\n\P{C}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
