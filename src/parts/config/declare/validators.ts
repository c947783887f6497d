import { BootError, type BootProblem } from "../../../base/errors/boot.ts";
import type { BootRule } from "../../../base/errors/boot-rule.ts";
import { placed } from "../../../base/errors/call-site.ts";
import { isRecord } from "../../../base/errors/option-table.ts";
import { quoted } from "../../../base/errors/quoted.ts";
import { isAccessRule } from "../../../base/identity/access.ts";
import { isBounds, isDefinition, isStrings } from "./declaration.ts";
import {
  type ConfigKeyRegistry,
  type ConfigType,
  hasKebabCase,
  isKeyId,
  type RegisteredConfigKey,
} from "./key.ts";
import { named, outOfBounds, typeMismatch } from "./value-check.ts";

/**
 * Checks the bounds of every key (specification 2.2): only number keys have bounds, `min` is not
 * above `max`, and the default is within the bounds.
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyBounds(registry: ConfigKeyRegistry): void {
  validate(registry, boundsProblems);
}

/**
 * Checks every computed key (specification 2.2): `computed` is a function, and the key is not
 * encrypted.
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyComputed(registry: ConfigKeyRegistry): void {
  validate(registry, computedProblems);
}

/**
 * Checks every key that a request may override (specification 2.2): it is neither of type text nor
 * encrypted, and a number has bounds.
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyAllowPerRequest(registry: ConfigKeyRegistry): void {
  validate(registry, allowPerRequestProblems);
}

function validate(registry: ConfigKeyRegistry, rule: Rule): void {
  const keys = [...registry.configKeys.values()];
  const problems = keys.flatMap((key) => configKeyProblems(key, undefined, [rule]));
  if (problems.length > 0) throw new BootError(placed(problems));
}

export function configKeyProblems(
  key: RegisteredConfigKey,
  names: KeyNames = new Map(),
  rules = everyRule,
): BootProblem[] {
  const problems: BootProblem[] = [];
  const report = (rule: BootRule, message: string, fix: string) =>
    problems.push({ feature: key.feature, key: key.id, rule, message, fix });
  if (isDefinition(key.definition)) {
    const { options } = key.definition.declared;
    const subject = { ...key, options: isRecord(options) ? options : {} };
    for (const rule of rules) rule(subject, report, names);
  } else {
    const message = "it was not made by one of the three factories";
    const fix = "declare it with createSystemConfig, createTenantConfig or createUserConfig";
    report("not-a-declaration", message, fix);
  }
  return problems;
}

/** Keys by the identifiers that they have or had. */
type KeyNames = ReadonlyMap<string, readonly { readonly id: string }[]>;

export function keyNames(keys: readonly RegisteredConfigKey[]): KeyNames {
  const named = keys.flatMap(({ id, definition }) =>
    [id, ...(definition?.formerly ?? [])].map((name) => ({ name, id })),
  );
  return Map.groupBy(named, ({ name }) => name);
}

type Rule = (key: Subject, report: Report, names: KeyNames) => void;

interface Subject extends RegisteredConfigKey {
  readonly options: Readonly<Record<string, unknown>>;
}

type Report = (rule: BootRule, message: string, fix: string) => void;

const everyRule: readonly Rule[] = [
  nameProblems,
  optionsProblems,
  boundsProblems,
  defaultProblems,
  computedProblems,
  allowPerRequestProblems,
  accessProblems,
  formerlyProblems,
];

const types: readonly ConfigType[] = ["number", "boolean", "select", "text"];
const flags = ["allowPerRequest", "encrypted"];

/** Below the limits of DynamoDB (sort keys of 1,024 bytes) and SSM (paths of 1,011 characters). */
const longestId = 256;

function nameProblems({ id, name }: Subject, report: Report): void {
  if (!hasKebabCase(name)) {
    const message = `the name ${quoted(name)} has no kebab-case form`;
    report("key-name", message, "use ASCII letters and digits in camel case");
  }
  if (id.length > longestId) {
    const message = `the identifier has ${id.length} characters, more than ${longestId}`;
    report("key-length", message, "shorten the name");
  }
}

function optionsProblems(key: Subject, report: Report): void {
  const { options } = key;
  const { declared } = key.definition;
  if (!hasType(key)) {
    const fix = 'use "number", "boolean", "select" or "text"';
    report("key-type", `${quoted(declared.type)} is not a type`, fix);
  }
  if (!isRecord(declared.options)) {
    const message = `${quoted(declared.options)} is not an object of options`;
    report("key-options", message, "pass {} for none");
  }
  const values = ["default", "bounds", "computed", "access", "read", "write", "allowPerRequest"];
  unknownOptions(options, [...values, "options", "encrypted", "formerly"], "", report);
  for (const name of flags) {
    const value = options[name];
    if (value !== undefined && typeof value !== "boolean")
      report("option-type", `${name} ${quoted(value)} is not a boolean`, "use true or false");
  }
  if (hasType(key)) selectProblems(key, report);
}

function unknownOptions(options: object, known: string[], where: string, report: Report): void {
  const fix = `remove it; known options are ${known.join(", ")}`;
  for (const name of Object.keys(options)) {
    if (!known.includes(name))
      report("unknown-option", `unknown option ${quoted(name)}${where}`, fix);
  }
}

function selectProblems(
  { definition: { type }, options: { options } }: Subject,
  report: Report,
): void {
  if (type !== "select") {
    const fix = 'remove the options, or declare the key as "select"';
    if (options !== undefined) report("options-type", `options on a ${type} key`, fix);
  } else if (!isStrings(options) || options.length === 0) {
    const message = "a select key needs options, a list of at least one string";
    report("select-options", message, 'add options: ["first", "second"]');
  } else if (new Set(options).size < options.length) {
    const message = `the options ${quoted(options)} repeat a value`;
    report("select-options", message, "list each value once");
  }
}

function boundsProblems(key: Subject, report: Report): void {
  const { definition, options } = key;
  const { bounds } = options;
  if (bounds === undefined || !hasType(key)) return;
  if (definition.type !== "number") {
    const fix = 'remove the bounds, or declare the key as "number"';
    report("bounds-type", `bounds on a ${definition.type} key`, fix);
  } else if (!isBounds(bounds) || Object.keys(bounds).length > 2) {
    const message = "bounds is not { min, max } with two finite numbers";
    report("bounds-shape", message, "give both ends, for example { min: 1, max: 100 }");
  } else if (bounds.min > bounds.max) {
    const message = `bounds.min ${bounds.min} is above bounds.max ${bounds.max}`;
    report("bounds-order", message, "swap the two");
  } else {
    const outside = outOfBounds(bounds, definition.default);
    if (outside === undefined) return;
    const fix = outside.includes("below")
      ? "raise the default or lower the bound"
      : "lower the default or raise the bound";
    report("default-bounds", `default ${named(definition, definition.default)} ${outside}`, fix);
  }
}

function defaultProblems(key: Subject, report: Report): void {
  const { definition } = key;
  if (definition.default === undefined || !hasType(key)) return;
  const mismatch = typeMismatch(definition, definition.default);
  if (mismatch === undefined) return;
  const message = `default ${named(definition, definition.default)} ${mismatch}`;
  report("default-type", message, "change the default or the type of the key");
}

function computedProblems({ definition, options }: Subject, report: Report): void {
  const { computed } = options;
  if (computed === undefined) return;
  if (typeof computed !== "function") {
    const message = `computed ${quoted(computed)} is not a function`;
    report("computed-function", message, "pass async (ctx) => value");
  }
  if (definition.encrypted) {
    const message = "an encrypted key cannot be computed";
    report("computed-encrypted", message, "remove computed or encrypted");
  }
}

function allowPerRequestProblems({ definition, options }: Subject, report: Report): void {
  const { type, encrypted, allowPerRequest } = definition;
  if (!allowPerRequest) return;
  const fix = "remove allowPerRequest";
  if (type === "text") report("per-request-text", "allowPerRequest on a key of type text", fix);
  if (encrypted) report("per-request-encrypted", "allowPerRequest on an encrypted key", fix);
  if (type === "number" && options["bounds"] === undefined) {
    const message = "allowPerRequest on a number without bounds";
    report("per-request-bounds", message, "add bounds: { min, max }");
  }
}

function formerlyProblems(
  { id, options: { formerly } }: Subject,
  report: Report,
  names: KeyNames,
): void {
  for (const name of [formerly ?? []].flat()) {
    // Safe cast: no other value is in a map of names.
    const isTaken = names.get(name as string)?.some((key) => key.id === name || key.id !== id);
    if (isKeyId(name) && !isTaken) continue;
    const wrong = isTaken ? "is another key's" : "is no identifier";
    report("formerly", `formerly ${quoted(name)} ${wrong}`, "name what this key was before");
  }
}

function accessProblems({ options }: Subject, report: Report): void {
  const { access } = options;
  const rules = access === undefined ? options : access;
  if (!isRecord(rules)) {
    const message = `access ${quoted(access)} is not { read, write }`;
    const fix = "use access: { read: access.admin, write: access.systemAdmin }";
    report("access-rule", message, fix);
    return;
  }
  const names = ["read", "write"];
  if (access !== undefined) {
    if (names.some((name) => options[name] !== undefined))
      report("access-twice", "read or write is next to access", "move it under access");
    unknownOptions(rules, names, " under access", report);
  }
  for (const name of names) {
    const rule = rules[name];
    if (rule === undefined || isAccessRule(rule)) continue;
    const message = `${name} ${quoted(rule)} is not an access rule`;
    report("access-rule", message, 'use a rule of access, for example access.roles("editor")');
  }
}

function hasType({ definition }: Subject): boolean {
  return types.includes(definition.type);
}
