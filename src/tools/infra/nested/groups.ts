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

/** A template may have 60 dynamic references, and each function that answers requests has one. */
const mostFunctions = 50;

/** Grouped by feature, so that a new handler does not move the functions of other features. */
export function functionGroups({ registry }: DeclaredServer): FunctionGroup[] {
  const targets = routed(registry.handlers.values()).map(({ target }) => target);
  return [...Map.groupBy(targets, ({ feature }) => feature)].flatMap(([feature, handlers]) => {
    const functions = handlers.map(({ name }) => exportName(name));
    return Array.from({ length: Math.ceil(functions.length / mostFunctions) }, (_, index) => {
      const from = index * mostFunctions;
      const part = index === 0 ? "" : String(index + 1);
      return {
        name: part === "" ? feature : `${feature}.${part}`,
        stack: logicalId(feature, `Functions${part}`),
        functions: functions.slice(from, from + mostFunctions),
      };
    });
  });
}
