import { type Members, mappedMembers, type Value } from "../template.ts";

/** A resource or parameter by its logical ID, or an attribute of a resource. */
export interface Reference {
  readonly id: string;
  readonly attribute?: string | undefined;
  /** Whether a function takes it as a list. */
  readonly isList?: boolean;
}

/** Their second argument is a list. */
const listFunctions = ["Fn::Join", "Fn::Select"];

/** A copy of `value` in which `change` has replaced each reference. */
export function withReferences<Kept>(
  value: Kept,
  change: (reference: Reference) => Reference,
): Kept {
  const walk = (inner: unknown, isList: boolean): unknown => {
    if (typeof inner !== "object" || inner === null) return inner;
    if (Array.isArray(inner)) return inner.map(walkItem);
    const reference = referenceOf(inner);
    if (reference !== undefined) return written(change({ ...reference, isList }));
    const { "Fn::Sub": substituted }: Members = { ...inner };
    if (substituted === undefined) return walkMembers(inner, isList);
    const [text, locals = {}]: readonly unknown[] = [substituted].flat();
    const values = mappedMembers(Object(locals), walkItem);
    const changed = substitutions(String(text), values, change);
    return { "Fn::Sub": Array.isArray(substituted) ? [changed, values] : changed };
  };
  const walkItem = (inner: unknown) => walk(inner, false);
  const walkMembers = (members: object, isList: boolean) =>
    Object.fromEntries(
      Object.entries(members).map(([name, member]) => {
        const takesList = listFunctions.includes(name) || (name === "Fn::If" && isList);
        const isFunction = takesList && Array.isArray(member);
        return [
          name,
          isFunction ? member.map((one, index) => walk(one, index > 0)) : walkItem(member),
        ];
      }),
    );
  return walkItem(value) as Kept; // safe: only references change, each into another reference
}

/** The reference that `value` is: `Ref` or `Fn::GetAtt`. */
export function referenceOf(value: unknown): Reference | undefined {
  const { Ref: id, "Fn::GetAtt": attribute }: Members = Object(value);
  if (typeof id === "string") return { id };
  const path = Array.isArray(attribute) ? attribute.join(".") : attribute;
  return typeof path === "string" ? dotted(path) : undefined;
}

export function referencesIn(value: unknown): Reference[] {
  const found: Reference[] = [];
  withReferences(value, (reference) => {
    found.push(reference);
    return reference;
  });
  return found;
}

/** Names of the conditions that decide a value, or whether the value exists. */
export function conditionsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(conditionsIn);
  const { Condition: name, "Fn::If": choice = [] }: Members = { ...value };
  const [condition = name] = [choice].flat();
  return [
    ...(typeof condition === "string" ? [condition] : []),
    ...Object.values(value).flatMap(conditionsIn),
  ];
}

/** A stack returns a list as a string. */
export function written({ id, attribute, isList }: Reference): Value {
  if (attribute === undefined) return { Ref: id };
  const value = { "Fn::GetAtt": [id, attribute] };
  return isList && attribute.startsWith("Outputs.") ? { "Fn::Split": [",", value] } : value;
}

function dotted(path: string): Reference {
  const [, id = path, attribute] = /^([^.]*)\.(.*)$/s.exec(path) ?? [];
  return { id, attribute };
}

function substitutions(text: string, locals: Members, change: (one: Reference) => Reference) {
  return text.replaceAll(/\$\{([^!}][^}]*)\}/g, (whole, name: string) => {
    if (Object.hasOwn(locals, name)) return whole;
    const { id, attribute } = change(dotted(name));
    return attribute === undefined ? `\${${id}}` : `\${${id}.${attribute}}`;
  });
}
