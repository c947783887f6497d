import { defined } from "../../../base/types/defined.ts";
import { type Output, own, type Parameter, type Template, type Value, when } from "../template.ts";
import { type Reference, written } from "./references.ts";

/** `FilesTableArn` for an attribute. */
export function nameOf({ id, attribute = "" }: Reference) {
  return `${id}${attribute.replaceAll(/[^0-9A-Za-z]/g, "")}`;
}

/** By name. @throws Error if two resources have the same one. */
export function distinct(references: readonly Reference[]): Reference[] {
  const byName = new Map<string, Reference>();
  for (const reference of references) {
    const name = nameOf(reference);
    const other = byName.get(name) ?? reference;
    if (other.id !== reference.id)
      throw new Error(
        `${other.id} and ${reference.id} come to the parameter ${name} of a nested template; rename one of the two`,
      );
    byName.set(name, reference);
  }
  return [...byName.values()];
}

/** CloudFormation reads a parameter of SSM for the parent, and checks its rules there. */
export function parameterFor({ Parameters }: Template, { id, attribute }: Reference): Parameter {
  const given = own(Parameters, id);
  if (given === undefined) {
    const what = attribute === undefined ? id : `${attribute} of ${id}`;
    return { Type: "String", Description: `${what} in the stack around this one` };
  }
  const { Type, Description, NoEcho } = given;
  if (!Type.startsWith("AWS::SSM::Parameter::Value<")) return given;
  return defined({ Type: isList(given) ? "CommaDelimitedList" : "String", Description, NoEcho });
}

/** CloudFormation refuses a reference to a resource that does not exist. */
export function returnedValue({ Resources }: Template, one: Reference): Output {
  const Condition = Resources[one.id]?.Condition;
  return {
    Description: "For other stacks",
    ...(Condition !== undefined && { Condition }),
    Value: written(one),
  };
}

/** As for `returnedValue`. A nested stack takes a list as a string with commas. */
export function givenValue(
  { Parameters, Resources }: Template,
  { id }: Reference,
  outer: Reference,
): Value {
  const value = written(outer);
  const parameter = own(Parameters, id);
  if (parameter !== undefined) return isList(parameter) ? { "Fn::Join": [",", value] } : value;
  const condition = Resources[id]?.Condition;
  return condition === undefined ? value : when(condition, value, "");
}

/** `CommaDelimitedList`, `List<AWS::EC2::Subnet::Id>`, or either from SSM. */
function isList({ Type }: Parameter) {
  return /^(?:AWS::SSM::Parameter::Value<)?(?:List<|CommaDelimitedList)/.test(Type);
}
