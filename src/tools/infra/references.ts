import type { Template } from "./template.ts";

/** Covers `Ref`, `Fn::GetAtt`, `Fn::Sub`, `DependsOn` and conditions. */
export function danglingReferences({
  Parameters,
  Conditions,
  Resources,
  Outputs,
}: Template): string[] {
  const names = new Set([...Object.keys(Parameters), ...Object.keys(Resources)]);
  const isThere = ({ name, isCondition }: Reference) =>
    isCondition ? Object.hasOwn(Conditions, name) : name.startsWith("AWS::") || names.has(name);
  const all = [
    ...Object.entries(Conditions).flatMap(([id, value]) => referencesOf(value, `condition ${id}`)),
    ...Object.entries(Resources).flatMap(([id, resource]) => [
      ...ownReferences(resource, id),
      ...referencesOf(resource.Properties, id),
    ]),
    ...Object.entries(Outputs).flatMap(([id, output]) => [
      ...ownReferences(output, `output ${id}`),
      ...referencesOf(output, `output ${id}`),
    ]),
  ];
  const missing = all.filter((reference) => !isThere(reference));
  return [
    ...new Set(
      missing.map(
        ({ from, name, isCondition }) =>
          `${from} refers to ${isCondition ? "the condition " : ""}${name}`,
      ),
    ),
  ];
}

interface Reference {
  readonly from: string;
  readonly name: string;
  readonly isCondition: boolean;
}

function ownReferences(
  item: { readonly Condition?: unknown; readonly DependsOn?: unknown },
  from: string,
): Reference[] {
  const dependencies = [item.DependsOn ?? []]
    .flat()
    .map((name) => ({ from, name: String(name), isCondition: false }));
  return item.Condition === undefined
    ? dependencies
    : [{ from, name: String(item.Condition), isCondition: true }, ...dependencies];
}

function referencesOf(value: unknown, from: string): Reference[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item) => referencesOf(item, from));
  const to = (name: unknown, isCondition = false): Reference => ({
    from,
    name: String(name),
    isCondition,
  });
  const entries = Object.entries(value);
  const inner = entries.flatMap(([, member]) => referencesOf(member, from));
  const [[name, given] = ["", undefined]] = entries;
  if (entries.length !== 1) return inner; // an intrinsic function is the only member of its object
  const [first, second] = [given].flat();
  switch (name) {
    case "Ref":
      return [to(given)];
    // A condition's name is a string; in an IAM statement, `Condition` is an object.
    case "Condition":
      return typeof given === "string" ? [to(given, true)] : inner;
    case "Fn::If":
      return [to(first, true), ...inner];
    case "Fn::GetAtt":
      return [to(String(first).split(".")[0])];
    case "Fn::Sub": {
      const local = Object.keys(typeof second === "object" && second !== null ? second : {});
      const used = [...String(first).matchAll(/\$\{([^!}][^}]*)\}/g)].map(
        ([, placeholder]) => String(placeholder).split(".")[0],
      );
      return [
        ...used.filter((one) => !local.includes(String(one))).map((one) => to(one)),
        ...inner,
      ];
    }
    default:
      return inner;
  }
}
