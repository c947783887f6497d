import { own, type Template } from "../template.ts";
import type { FunctionGroup } from "./groups.ts";
import { neededBy } from "./places.ts";

/**
 * A nested stack needs all that any of its resources needs, so there can be circles that one
 * template does not have.
 *
 * @throws Error if the stack of a group needs itself.
 */
export function refuseCircles({ Resources }: Template, groups: readonly FunctionGroup[]) {
  for (const { stack } of groups) {
    const circle = circleOf(Resources, stack);
    if (circle !== undefined)
      throw new Error(
        `nested templates would need one another in a circle, which CloudFormation refuses: ${circle.join(" -> ")}; remove one of these references, for example by an AWS::IAM::Policy for a role in place of a resource that names the role`,
      );
  }
}

/** The shortest way from `stack` back to itself. */
function circleOf(Resources: Template["Resources"], stack: string) {
  const ways: [id: string, way: readonly string[]][] = [[stack, [stack]]];
  const reached = new Set<string>();
  for (const [from, way] of ways) {
    const resource = own(Resources, from);
    if (resource === undefined) continue; // a parameter
    for (const { id } of neededBy(resource)) {
      if (id === stack) return [...way, id];
      if (!reached.has(id)) ways.push([id, [...way, id]]);
      reached.add(id);
    }
  }
  return undefined;
}
