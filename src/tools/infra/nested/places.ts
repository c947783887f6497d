import { functionIds } from "../function-part.ts";
import { own, type Resource, type Template } from "../template.ts";
import type { FunctionGroup } from "./groups.ts";
import { type Reference, referencesIn } from "./references.ts";

/** The nested stack of each resource and output that leaves the parent. */
export interface Places {
  readonly resources: ReadonlyMap<string, string>;
  readonly outputs: ReadonlyMap<string, string>;
}

/**
 * A resource belongs to a group if all functions that it depends on do, directly or through other
 * resources. One with a deletion policy holds data and stays in the parent. If it depends on a
 * group, so does all that depends on it, because the group cannot need it in turn. An own output
 * stays, because callers ask the stack that was deployed.
 */
export function placesIn({ Resources }: Template, groups: readonly FunctionGroup[]): Places {
  const seeds = seedsOf(Resources, groups);
  const known = new Map<string, ReadonlySet<string>>();
  const rootsOf = (id: string): ReadonlySet<string> => {
    const seed = seeds.get(id);
    if (seed !== undefined) return new Set([seed]);
    const resource = own(Resources, id);
    if (resource === undefined) return new Set();
    const found = known.get(id);
    if (found !== undefined) return found;
    known.set(id, new Set()); // for a circle, which CloudFormation refuses
    const needed = rootsOfAll(neededBy(resource));
    const holdsData = resource.DeletionPolicy !== undefined;
    const roots = holdsData && needed.size > 0 ? new Set([parent]) : needed;
    known.set(id, roots);
    return roots;
  };
  const rootsOfAll = (references: readonly Reference[]) =>
    new Set(references.flatMap(({ id }) => [...rootsOf(id)]));
  const place = (roots: ReadonlySet<string>) => {
    const [stack, other] = roots;
    return stack === undefined || stack === parent || other !== undefined ? [] : [stack];
  };
  const resources = Object.keys(Resources).flatMap((id) =>
    place(rootsOf(id)).map((stack) => [id, stack] as const),
  );
  const outputs = groups.flatMap(({ stack, functions }) =>
    functions
      .flatMap((name) => Object.values(functionIds(name).outputs))
      .map((id) => [id, stack] as const),
  );
  return { resources: new Map(resources), outputs: new Map(outputs) };
}

export function neededBy({ DependsOn = [], ...resource }: Resource): Reference[] {
  return [...[DependsOn].flat().map((id) => ({ id })), ...referencesIn(resource)];
}

/** No logical ID has a hyphen. */
const parent = "the-parent";

/** Each function, its role and its log group, which do not depend on the function. */
function seedsOf(Resources: Template["Resources"], groups: readonly FunctionGroup[]) {
  const functions = Object.entries(Resources).flatMap(([id, { Type }]) =>
    Type === "AWS::Lambda::Function" ? [[id, parent] as const] : [],
  );
  const grouped = groups.flatMap(({ stack, functions }) =>
    functions.flatMap((name) => {
      const { lambda, logGroup, role } = functionIds(name);
      return [lambda, logGroup, role].map((id) => [id, stack] as const);
    }),
  );
  return new Map([...functions, ...grouped]);
}
