import type { Extension } from "./extension.ts";

const sections = ["Parameters", "Conditions", "Resources", "Outputs"] as const;

/** @throws Error if two extensions share a name. */
export function combined(extensions: readonly Extension[]): Extension {
  const part = sections.map((section) => {
    const members: readonly (Readonly<Record<string, unknown>> | undefined)[] = extensions.map(
      ({ part }) => part[section],
    );
    return [section, merged(section, members)];
  });
  const variables = merged(
    "Variables",
    extensions.map(({ variables }) => variables),
  );
  return { part: Object.fromEntries(part), variables };
}

function merged<Item>(
  what: string,
  all: readonly (Readonly<Record<string, Item>> | undefined)[],
): Readonly<Record<string, Item>> {
  const names = all.flatMap((members) => Object.keys({ ...members }));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`${what}.${twice} is in two files; keep it in one`);
  return Object.assign({}, ...all);
}
