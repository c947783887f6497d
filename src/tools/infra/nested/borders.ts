import { defined } from "../../../base/types/defined.ts";
import { type Output, own, type Parameter, type Template, type Value, when } from "../template.ts";
import { type Reference, written } from "./references.ts";

/** `FilesTableArn` for an attribute. */
export function nameOf({ id, attribute = "" }: Reference) {
  return `${id}${attribute}`.replaceAll(/[^0-9A-Za-z]/g, "");
}

/** Whether it has the same value in each template: a nested stack has its own name and ID. */
export function isEverywhere(id: string) {
  return id.startsWith("AWS::") && id !== "AWS::StackName" && id !== "AWS::StackId";
}

/** By name. @throws Error if two resources have the same one. */
export function distinct(references: readonly Reference[]): Reference[] {
  const byName = new Map<string, Reference>();
  for (const reference of references) {
    const name = nameOf(reference);
    const other = byName.get(name) ?? reference;
    if (other.id !== reference.id)
      throw new Error(
        `${other.id} and ${reference.id} come to the name ${name} in a nested template; rename one of the two`,
      );
    byName.set(name, { ...reference, isList: [reference, other].some(({ isList }) => isList) });
  }
  return [...byName.values()];
}

/** CloudFormation reads a parameter of SSM for the parent, and checks its rules there. */
export function parameterFor({ Parameters }: Template, one: Reference): Parameter {
  const { id, attribute } = one;
  const given = own(Parameters, id);
  if (given === undefined) {
    const what = attribute === undefined ? id : `${attribute} of ${id}`;
    return { Type: typeFor(one.isList), Description: `${what} in the stack around this one` };
  }
  const { Type, Description, NoEcho } = given;
  if (!Type.startsWith("AWS::SSM::Parameter::Value<")) return given;
  return defined({ Type: typeFor(isListType(Type)), Description, NoEcho });
}

const typeFor = (isList = false) => (isList ? "CommaDelimitedList" : "String");

/** CloudFormation refuses a reference to a resource that does not exist. */
export function returnedValue({ Resources }: Template, one: Reference): Output {
  const Condition = Resources[one.id]?.Condition;
  return {
    Description: "For other stacks",
    ...(Condition !== undefined && { Condition }),
    Value: asString(written(one), one.isList),
  };
}

/** As for `returnedValue`. */
export function givenValue(
  { Parameters, Resources }: Template,
  { id, isList }: Reference,
  outer: Reference,
): Value {
  const parameter = own(Parameters, id);
  const value = asString(written(outer), parameter ? isListType(parameter.Type) : isList);
  const condition = own(Resources, id)?.Condition;
  return condition === undefined ? value : when(condition, value, "");
}

/** Stacks take and return only strings. */
function asString(value: Value, isList = false): Value {
  return isList ? { "Fn::Join": [",", value] } : value;
}

/** `CommaDelimitedList`, `List<AWS::EC2::Subnet::Id>`, or either from SSM. */
function isListType(type: string) {
  return /^(?:AWS::SSM::Parameter::Value<)?(?:List<|CommaDelimitedList)/.test(type);
}
