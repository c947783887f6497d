import { createHash } from "node:crypto";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { routed } from "../../../app/registry/registry.ts";
import { exportName } from "../functions.ts";
import { logicalId } from "../template.ts";

/** Functions of one feature, which share a nested template. */
export interface FunctionGroup {
  /** Part of the file's name: `files`, or `files.2` where a feature has several groups. */
  readonly name: string;
  /** The logical ID of the nested stack. */
  readonly stack: string;
  readonly functions: readonly string[];
}

/** Fewer than `mostDynamicReferences`: each function that answers requests has one. */
const mostFunctions = 50;

/** Grouped by feature, so that a new handler does not move the functions of other features. */
export function functionGroups({ registry }: DeclaredServer): FunctionGroup[] {
  const targets = routed(registry.handlers.values()).map(({ target }) => target);
  return [...Map.groupBy(targets, ({ feature }) => feature)].flatMap(([feature, handlers]) =>
    partsOf(handlers.map(({ name }) => exportName(name))).map(([index, functions]) => {
      const part = index === 0 ? "" : String(index + 1);
      return {
        name: part === "" ? feature : `${feature}.${part}`,
        stack: logicalId(feature, `Functions${part}`),
        functions,
      };
    }),
  );
}

/** Split by name, so that other functions move only if their number of parts changes. */
function partsOf(functions: readonly string[]): [index: number, functions: string[]][] {
  let parts = 1;
  let split = splitInto(parts, functions);
  while (split.some(([, members]) => members.length > mostFunctions)) {
    parts *= 2;
    split = splitInto(parts, functions);
  }
  return split;
}

function splitInto(parts: number, functions: readonly string[]) {
  const split = Map.groupBy(functions, (name) => partOf(name, parts));
  return [...split].toSorted(([one], [other]) => one - other);
}

function partOf(name: string, parts: number) {
  return createHash("sha256").update(name).digest().readUInt32BE() % parts;
}
