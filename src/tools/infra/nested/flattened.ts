import type { ComparedTemplate } from "../difference.ts";
import { type Members, own } from "../template.ts";
import { type Child, stackType } from "./nested-templates.ts";
import { type Reference, referenceOf, withReferences } from "./references.ts";

export interface Flattened<Whole = ComparedTemplate> {
  readonly template: Whole;
  /** The nested stack of each resource that is not in the parent. */
  readonly stacks: ReadonlyMap<string, string>;
}

/** As `templateSet` names them. */
const ownFile = /^(?:all|functions)-[a-z0-9-]+\.[a-z0-9.-]+\.json$/;

/** Files of nested templates that keelson has written. */
export function nestedFiles({ Resources }: ComparedTemplate): [stack: string, file: string][] {
  return Object.entries(Resources).flatMap(([stack, { Type, Properties = {} }]) => {
    const file = Properties["TemplateURL"];
    return Type === stackType && typeof file === "string" && ownFile.test(file)
      ? [[stack, file]]
      : [];
  });
}

/** One template with the resources of all, in which parameters and outputs of stacks are resolved. */
export function flattened<Whole extends ComparedTemplate>(
  parent: Whole,
  children: readonly Child<ComparedTemplate>[],
): Flattened<Whole> {
  const templates = new Map(children.map(({ stack, template }) => [stack, template]));
  const returned = new Set<unknown>();
  /** Follows an output of a nested stack to its resource. */
  const outer = (reference: Reference): Reference => {
    const outputs = templates.get(reference.id)?.Outputs ?? {};
    const output = own(outputs, String(reference.attribute).replace(/^Outputs\./, ""));
    returned.add(output);
    return passedReference(output?.Value) ?? reference;
  };
  const inner = (stack: string) => {
    const given: Members = Object(own(parent.Resources, stack)?.Properties?.["Parameters"]);
    return (reference: Reference): Reference => {
      const found = passedReference(own(given, reference.id));
      return found === undefined ? reference : outer(found);
    };
  };
  const kept = Object.entries(parent.Resources).flatMap(([id, resource]) =>
    templates.has(id) ? [] : [[id, withReferences(resource, outer)] as const],
  );
  const moved = children.flatMap(({ stack, template: { Resources } }) =>
    Object.entries(Resources).map(([id, resource]) => ({
      stack,
      entry: [id, withReferences(resource, inner(stack))] as const,
    })),
  );
  const outputs = [
    ...Object.entries(parent.Outputs ?? {}).map(([id, one]) => [id, withReferences(one, outer)]),
    ...children.flatMap(({ stack, template: { Outputs = {} } }) =>
      Object.entries(Outputs).flatMap(([id, one]) =>
        returned.has(one) ? [] : [[id, withReferences(one, inner(stack))]],
      ),
    ),
  ];
  const Resources = Object.fromEntries([...kept, ...moved.map(({ entry }) => entry)]);
  return {
    // Safe cast: only references change.
    template: { ...parent, Resources, Outputs: Object.fromEntries(outputs) } as Whole,
    stacks: new Map(moved.map(({ stack, entry: [id] }) => [id, stack])),
  };
}

/** Of a value that templates pass to one another, under a condition or as a string of items. */
function passedReference(value: unknown): Reference | undefined {
  const { "Fn::If": choice, "Fn::Join": list, "Fn::Split": items }: Members = Object(value);
  const wrapped = choice ?? list ?? items;
  return Array.isArray(wrapped) ? passedReference(wrapped[1]) : referenceOf(value);
}
