import { type Resource, type Template, templateOf } from "../template.ts";
import {
  distinct,
  givenValue,
  isEverywhere,
  nameOf,
  parameterFor,
  returnedValue,
} from "./borders.ts";
import { refuseCircles } from "./circles.ts";
import type { FunctionGroup } from "./groups.ts";
import { type Places, placesIn } from "./places.ts";
import { conditionsIn, type Reference, referencesIn, withReferences } from "./references.ts";

export interface NestedTemplates {
  readonly parent: Template;
  /** By file name. */
  readonly children: ReadonlyMap<string, Child<Template>>;
}

export interface Child<Whole> {
  /** The logical ID of the nested stack. */
  readonly stack: string;
  readonly template: Whole;
}

export const stackType = "AWS::CloudFormation::Stack";

/**
 * Moves each group of functions into a nested template, with everything that belongs to only that
 * group. A nested template takes other resources as parameters, and returns its own to other
 * templates as outputs.
 *
 * @throws Error if the names of two resources collide, or if nested stacks need one another.
 */
export function nestedTemplates(
  template: Template,
  groups: readonly FunctionGroup[],
  fileOf: (group: FunctionGroup) => string,
): NestedTemplates {
  const places = placesIn(template, groups);
  const used = groups.filter(({ stack }) => [...places.resources.values()].includes(stack));
  const parent = parentOf(template, places, used, fileOf);
  refuseCircles(parent, used);
  return {
    parent,
    children: new Map(
      used.map((group) => {
        const child = { stack: group.stack, template: childOf(template, places, group) };
        return [fileOf(group), child] as const;
      }),
    ),
  };
}

function parentOf(
  template: Template,
  places: Places,
  groups: readonly FunctionGroup[],
  fileOf: (group: FunctionGroup) => string,
) {
  const stackOf = (id: string) => places.resources.get(id);
  const outer = (reference: Reference): Reference => {
    const stack = stackOf(reference.id);
    return stack === undefined
      ? reference
      : { ...reference, id: stack, attribute: `Outputs.${nameOf(reference)}` };
  };
  const dependencies = (needs: readonly string[]) => {
    const DependsOn = [...new Set(needs.map((id) => stackOf(id) ?? id))];
    return DependsOn.length === 0 ? {} : { DependsOn };
  };
  const stackResource = (group: FunctionGroup): Resource => {
    const { taken, needs } = boundaryOf(template, places, group.stack);
    const Parameters = Object.fromEntries(
      taken.map((one) => [nameOf(one), givenValue(template, one, outer(one))]),
    );
    const Properties = { TemplateURL: fileOf(group), Parameters };
    return { Type: stackType, ...dependencies(needs), Metadata: unpackaged, Properties };
  };
  const kept = remaining(template.Resources, places.resources).map(
    ([id, { DependsOn = [], ...resource }]) => [
      id,
      { ...withReferences(resource, outer), ...dependencies([DependsOn].flat()) },
    ],
  );
  const outputs = remaining(template.Outputs, places.outputs).map(([id, output]) => [
    id,
    withReferences(output, outer),
  ]);
  return templateOf(template.Description, [
    { ...template, Resources: Object.fromEntries(kept), Outputs: Object.fromEntries(outputs) },
    ...groups.map((group) => ({ Resources: { [group.stack]: stackResource(group) } })),
  ]);
}

/** cfn-lint warns of a path, which `aws cloudformation package` replaces. */
const unpackaged = { "cfn-lint": { config: { ignore_checks: ["W3002"] } } };

function childOf(template: Template, places: Places, { name, stack }: FunctionGroup) {
  const { members, taken } = boundaryOf(template, places, stack);
  const inner = new Set(members.map(([id]) => id));
  const rewritten = (reference: Reference) =>
    inner.has(reference.id) || isEverywhere(reference.id) ? reference : { id: nameOf(reference) };
  const resources = members.map(([id, { DependsOn = [], ...resource }]) => {
    const needs = [DependsOn].flat().filter((need) => inner.has(need));
    const more = needs.length === 0 ? {} : { DependsOn: needs };
    return [id, { ...withReferences(resource, rewritten), ...more }] as const;
  });
  const outputs = Object.entries(template.Outputs).filter(
    ([id]) => places.outputs.get(id) === stack,
  );
  const returned = distinct(crossing(template, places).filter(({ id }) => inner.has(id))).map(
    (one) => [nameOf(one), returnedValue(template, one)],
  );
  const body = [members, outputs];
  return templateOf(`The functions of ${name}. Made by keelson infra: do not edit.`, [
    {
      Parameters: Object.fromEntries(
        taken.map((one) => [nameOf(one), parameterFor(template, one)]),
      ),
      Conditions: conditionsOf(template, body),
      Resources: Object.fromEntries(resources),
      Outputs: Object.fromEntries([
        ...outputs.map(([id, output]) => [id, withReferences(output, rewritten)]),
        ...returned,
      ]),
    },
  ]);
}

/** A group's resources, with their references to others. */
function boundaryOf(template: Template, { resources, outputs }: Places, stack: string) {
  const members = Object.entries(template.Resources).filter(([id]) => resources.get(id) === stack);
  const body = [
    members,
    Object.entries(template.Outputs).filter(([id]) => outputs.get(id) === stack),
  ];
  const conditions = conditionsOf(template, body);
  const isOuter = (id: string) => resources.get(id) !== stack && !isEverywhere(id);
  const taken = referencesIn([body, conditions]).filter(({ id }) => isOuter(id));
  return {
    members,
    taken: distinct(taken),
    needs: members.flatMap(([, { DependsOn = [] }]) => DependsOn).filter(isOuter),
  };
}

/** References from one stack to another. */
function crossing({ Resources, Outputs }: Template, { resources, outputs }: Places) {
  return [
    ...Object.entries(Resources).map(([id, value]) => [resources.get(id), value] as const),
    ...Object.entries(Outputs).map(([id, value]) => [outputs.get(id), value] as const),
  ].flatMap(([stack, value]) =>
    referencesIn(value).filter(({ id }) => resources.get(id) !== stack),
  );
}

function remaining<Item>(
  items: Readonly<Record<string, Item>>,
  moved: ReadonlyMap<string, string>,
) {
  return Object.entries(items).filter(([id]) => !moved.has(id));
}

/** With the conditions that they depend on. */
function conditionsOf({ Conditions }: Template, value: unknown): Template["Conditions"] {
  const names = new Set(conditionsIn(value));
  for (const name of names) for (const other of conditionsIn(Conditions[name])) names.add(other);
  return Object.fromEntries(Object.entries(Conditions).filter(([name]) => names.has(name)));
}
