import { type Members, mappedMembers } from "../template.ts";

/** A resource or parameter by its logical ID, or an attribute of a resource. */
export interface Reference {
  readonly id: string;
  readonly attribute?: string | undefined;
}

/** A copy of `value` in which `change` has replaced each reference. */
export function withReferences<Kept>(
  value: Kept,
  change: (reference: Reference) => Reference,
): Kept {
  const walk = (inner: unknown): unknown => {
    if (typeof inner !== "object" || inner === null) return inner;
    if (Array.isArray(inner)) return inner.map(walk);
    const reference = referenceOf(inner);
    if (reference !== undefined) return written(change(reference));
    const { "Fn::Sub": substituted }: Members = { ...inner };
    if (substituted === undefined) return mappedMembers(inner, walk);
    const [text, locals = {}]: readonly unknown[] = [substituted].flat();
    const values = mappedMembers(Object(locals), walk);
    const changed = substitutions(String(text), values, change);
    return { "Fn::Sub": Array.isArray(substituted) ? [changed, values] : changed };
  };
  return walk(value) as Kept; // safe: only references change, each into another reference
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

export function written({ id, attribute }: Reference) {
  return attribute === undefined ? { Ref: id } : { "Fn::GetAtt": [id, attribute] };
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
