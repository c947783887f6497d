import type { Template } from "./template.ts";

/**
 * Lists references to names that the template lacks. Covers `Ref`, `Fn::GetAtt`, `Fn::Sub`,
 * `DependsOn` and conditions.
 */
export function danglingReferences({
  Parameters,
  Conditions,
  Resources,
  Outputs,
}: Template): string[] {
  const known = new Set([
    ...Object.keys({ ...Parameters, ...Resources }),
    ...Object.keys(Conditions).map(conditionNamed),
  ]);
  const all = [
    ...Object.entries(Conditions).map(([id, value]) => ({
      from: `condition ${id}`,
      names: referencesOf(value),
    })),
    ...Object.entries(Resources).map(([id, resource]) => ({
      from: id,
      names: [...ownReferences(resource), ...referencesOf(resource.Properties)],
    })),
    ...Object.entries(Outputs).map(([id, output]) => ({
      from: `output ${id}`,
      names: [...ownReferences(output), ...referencesOf(output)],
    })),
  ];
  const missing = all.flatMap(({ from, names }) =>
    names
      .filter((name) => !known.has(name) && !name.startsWith("AWS::"))
      .map((name) => `${from} refers to ${name}`),
  );
  return [...new Set(missing)];
}

const conditionNamed = (name: unknown) => `the condition ${name}`;

function ownReferences(item: { readonly Condition?: unknown; readonly DependsOn?: unknown }) {
  return [
    ...(item.Condition === undefined ? [] : [conditionNamed(item.Condition)]),
    ...[item.DependsOn ?? []].flat().map(String),
  ];
}

function referencesOf(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(referencesOf);
  const entries = Object.entries(value);
  const inner = entries.flatMap(([, member]) => referencesOf(member));
  const [[name, given] = ["", undefined]] = entries;
  if (entries.length !== 1) return inner; // an intrinsic function is the only member of its object
  const [first, second] = [given].flat();
  switch (name) {
    case "Ref":
      return [String(given)];
    // A condition's name is a string; in an IAM statement, `Condition` is an object.
    case "Condition":
      return typeof given === "string" ? [conditionNamed(given)] : inner;
    case "Fn::If":
      return [conditionNamed(first), ...inner];
    case "Fn::GetAtt":
      return [beforeDot(String(first))];
    case "Fn::Sub": {
      const local = Object.keys(typeof second === "object" && second !== null ? second : {});
      const used = [...String(first).matchAll(/\$\{([^!}][^}]*)\}/g)].map(([, placeholder]) =>
        beforeDot(String(placeholder)),
      );
      return [...used.filter((one) => !local.includes(one)), ...inner];
    }
    default:
      return inner;
  }
}

function beforeDot(text: string) {
  return text.replace(/\..*$/s, "");
}
