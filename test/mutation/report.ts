import { basename } from "node:path";

/** The used part of Stryker's report. */
export interface Report {
  readonly files: Readonly<
    Record<string, { readonly source: string; readonly mutants: readonly ReportedMutant[] }>
  >;
}

interface ReportedMutant {
  readonly status: string;
  readonly replacement?: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

/** Both count from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** Identity of a mutant, which stays the same if the file or the line moves. */
export interface Place {
  /** Name of its file, without folders. */
  readonly file: string;
  /** The line in which it starts. */
  readonly line: string;
  /** `a < b -> a <= b` */
  readonly change: string;
}

/** A change of the sources, and its result. */
export interface Mutant extends Place {
  /** `src/parts/once/claim.ts:87` */
  readonly at: string;
  readonly status: string;
  readonly survived: boolean;
}

const longest = 80;

/** The mutants that could be run. */
export function mutantsOf({ files }: Report): Mutant[] {
  return Object.entries(files).flatMap(([path, { source, mutants }]) => {
    const lines = source.split("\n");
    return mutants.flatMap(({ status, replacement = "", location: { start, end } }) => {
      if (["Ignored", "CompileError", "RuntimeError"].includes(status)) return [];
      const covered = lines.slice(start.line - 1, end.line);
      const last = covered.length - 1;
      covered[last] = covered[last]?.slice(0, end.column - 1) ?? "";
      covered[0] = covered[0]?.slice(start.column - 1) ?? "";
      const change = `${short(covered.join("\n"))} -> ${short(replacement)}`;
      const survived = status === "Survived" || status === "NoCoverage";
      const line = lines[start.line - 1]?.trim() ?? "";
      return [
        { file: basename(path), line, change, at: `${path}:${start.line}`, status, survived },
      ];
    });
  });
}

function short(code: string): string {
  const one = code.replaceAll(/\s+/g, " ");
  return one.length > longest ? `${one.slice(0, longest)}…` : one;
}
