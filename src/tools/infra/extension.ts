import { quoted } from "../../base/errors/quoted.ts";
import type { Values } from "./function-part.ts";
import { danglingReferences } from "./references.ts";
import type { Template, TemplatePart } from "./template.ts";

export interface Extension {
  readonly part: TemplatePart;
  readonly variables: Values;
}

const sections = ["Parameters", "Conditions", "Resources", "Outputs"] as const;
const known: readonly string[] = [
  "AWSTemplateFormatVersion",
  "Description",
  ...sections,
  "Globals",
];
const variablesPath = ["Globals", "Function", "Environment", "Variables"] as const;

/** From SAM's `Globals`, supports only environment variables of functions. */
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
  return { part, variables: variablesOf(template) };
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

/** @throws Error if the extension sets a variable that keelson sets. */
export function environmentWith(own: Values, { variables }: Extension): Values {
  const taken = Object.keys(variables).find(
    (name) => Object.hasOwn(own, name) || name === "KEELSON_AUTH_SECRET",
  );
  if (taken !== undefined)
    throw new Error(`the variable ${taken} is set by keelson; it cannot be set by Globals`);
  return { ...own, ...variables };
}

function sectionOf(
  section: (typeof sections)[number],
  read: unknown,
): Readonly<Record<string, unknown>> {
  const members = membersOf(section, read);
  for (const [name, member] of Object.entries(members)) {
    const { Type } = membersOf(`${section}.${name}`, member);
    const isTyped = section === "Resources" || section === "Parameters";
    if (isTyped && typeof Type !== "string") throw new Error(`${section}.${name} has no Type`);
  }
  return members;
}

function variablesOf(template: Readonly<Record<string, unknown>>): Values {
  let found = template;
  let path = "";
  for (const [index, name] of variablesPath.entries()) {
    const others = index === 0 ? [] : Object.keys(found).filter((other) => other !== name);
    if (others.length > 0)
      throw new Error(
        `${path}.${others[0]} is not taken; of Globals only ${variablesPath.slice(1).join(".")} is`,
      );
    path = index === 0 ? name : `${path}.${name}`;
    if (found[name] === undefined) return {};
    found = membersOf(path, found[name]);
  }
  return found as Values; // safe: the value was read from JSON
}

function membersOf(what: string, read: unknown): Readonly<Record<string, unknown>> {
  if (typeof read === "object" && read !== null && !Array.isArray(read))
    return read as Readonly<Record<string, unknown>>; // safe: checked above
  throw new Error(`${what} is ${quoted(read)}, not an object`);
}
