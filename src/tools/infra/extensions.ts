import type { Extension } from "./extension.ts";
import { duplicateOf, type Members, sections } from "./template.ts";

/** @throws Error if two extensions share a name. */
export function combined(extensions: readonly Extension[]): Extension {
  const part = sections.map((section) => [
    section,
    merged(
      section,
      extensions.map((one) => one.part[section] ?? {}),
    ),
  ]);
  const variables = merged(
    "Variables",
    extensions.map((one) => one.variables),
  );
  return { part: Object.fromEntries(part), variables };
}

function merged<Section extends Members>(what: string, all: readonly Section[]): Section {
  const twice = duplicateOf(all.flatMap((members) => Object.keys(members)));
  if (twice !== undefined) throw new Error(`${what}.${twice} is in two files; keep it in one`);
  return Object.assign({}, ...all);
}
