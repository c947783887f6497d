import { quoted } from "../../base/errors/quoted.ts";
import { danglingReferences } from "./references.ts";
import {
  duplicateOf,
  type Members,
  sections,
  type Template,
  type TemplatePart,
  type Values,
} from "./template.ts";

export interface Extension {
  readonly part: TemplatePart;
  readonly variables: Values;
}

const known: readonly string[] = [
  "AWSTemplateFormatVersion",
  "Description",
  ...sections,
  "Globals",
];
const variablesPath = ["Function", "Environment", "Variables"];

/** Validates an extension. Of SAM's `Globals`, supports only environment variables of functions. */
export function extensionOf(read: unknown): Extension {
  const template = membersOf("it", read);
  const unknown = Object.keys(template).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(`it has ${quoted(unknown)}; known are ${known.join(", ")}`);
  const part = Object.fromEntries(
    sections
      .filter((section) => template[section] !== undefined)
      .map((section) => [section, sectionOf(section, template[section])]),
  );
  return { part, variables: variablesOf(template["Globals"]) };
}

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

/** @throws Error if a name is already used, or a reference is dangling. */
export function extended(template: Template, { part }: Extension): Template {
  const merged = { ...template };
  for (const section of sections) {
    const added = part[section] ?? {};
    const taken = Object.keys(added).find((name) => Object.hasOwn(template[section], name));
    if (taken !== undefined)
      throw new Error(`${section}.${taken} is keelson's own; choose another name`);
    Object.assign(merged, { [section]: { ...template[section], ...added } });
  }
  const dangling = danglingReferences(merged);
  if (dangling.length > 0) throw new Error(`${dangling.join("; ")}, which is not there`);
  return merged;
}

/** @throws Error if keelson itself sets a variable of the extension. */
export function environmentWith(own: Values, { variables }: Extension): Values {
  const taken = Object.keys(variables).find(
    (name) => Object.hasOwn(own, name) || name === "KEELSON_AUTH_SECRET",
  );
  if (taken !== undefined)
    throw new Error(`the variable ${taken} is set by keelson; it cannot be set by Globals`);
  return { ...own, ...variables };
}

function sectionOf(section: (typeof sections)[number], read: unknown): Members {
  const members = membersOf(section, read);
  const isTyped = section === "Resources" || section === "Parameters";
  for (const [name, member] of Object.entries(members)) {
    const { Type } = membersOf(`${section}.${name}`, member);
    if (isTyped && typeof Type !== "string") throw new Error(`${section}.${name} has no Type`);
  }
  return members;
}

function variablesOf(globals: unknown): Values {
  let [found, path] = [globals, "Globals"];
  for (const name of variablesPath) {
    if (found === undefined) return {};
    const members = membersOf(path, found);
    const other = Object.keys(members).find((one) => one !== name);
    if (other !== undefined)
      throw new Error(
        `${path}.${other} is not taken; of Globals only ${variablesPath.join(".")} is`,
      );
    [found, path] = [members[name], `${path}.${name}`];
  }
  return found === undefined ? {} : (membersOf(path, found) as Values); // safe cast: read from JSON
}

function membersOf(what: string, read: unknown): Members {
  // Safe cast: the value is an object.
  if (typeof read === "object" && read !== null && !Array.isArray(read)) return read as Members;
  throw new Error(`${what} is ${quoted(read)}, not an object`);
}
