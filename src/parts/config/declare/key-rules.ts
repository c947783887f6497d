import { quoted } from "../../../base/errors/quoted.ts";
import { isAccessRule } from "../../../base/identity/access.ts";
import { isBounds, isObject, isStrings } from "./definition.ts";
import type { ConfigKeyDefinition, ConfigType, RegisteredConfigKey } from "./key.ts";
import { hasKebabCase, isKeyId } from "./key-id.ts";
import { named, outOfBounds, typeMismatch } from "./value-check.ts";

export interface Subject {
  readonly id: string;
  readonly name: string;
  readonly definition: ConfigKeyDefinition;
  readonly options: Readonly<Record<string, unknown>>;
}

export type Report = (rule: string, message: string, fix: string) => void;

export type Rule = (key: Subject, report: Report, keys: readonly RegisteredConfigKey[]) => void;

const types: readonly unknown[] = [
  "number",
  "boolean",
  "select",
  "text",
] satisfies readonly ConfigType[];
const known = [
  "default",
  "bounds",
  "computed",
  "access",
  "read",
  "write",
  "allowPerRequest",
  "options",
  "encrypted",
  "formerly",
];

/** DynamoDB allows sort keys of 1,024 bytes, SSM names of 1,011 characters with their path. */
const longestId = 256;

export function nameProblems({ id, name }: Subject, report: Report): void {
  if (!hasKebabCase(name)) {
    report(
      "key-name",
      `the name ${quoted(name)} has no kebab-case form`,
      "use ASCII letters and digits in camel case",
    );
  }
  if (id.length > longestId) {
    report(
      "key-length",
      `the identifier has ${id.length} characters, more than ${longestId}`,
      "shorten the name",
    );
  }
}

export function optionsProblems(key: Subject, report: Report): void {
  const { options, definition } = key;
  if (!hasType(key)) {
    report(
      "key-type",
      `${quoted(definition.declared.type)} is not a type`,
      'use "number", "boolean", "select" or "text"',
    );
  }
  if (!isObject(definition.declared.options)) {
    report(
      "key-options",
      `${quoted(definition.declared.options)} is not an object of options`,
      "pass {} for none",
    );
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      report(
        "unknown-option",
        `unknown option ${quoted(name)}`,
        `remove it; known options are ${known.join(", ")}`,
      );
    }
  }
  for (const name of ["allowPerRequest", "encrypted"]) {
    const value = options[name];
    if (value !== undefined && typeof value !== "boolean") {
      report("option-type", `${name} ${quoted(value)} is not a boolean`, "use true or false");
    }
  }
  if (hasType(key)) selectProblems(key, report);
}

function selectProblems({ definition, options: { options } }: Subject, report: Report): void {
  if (definition.type !== "select") {
    if (options !== undefined) {
      report(
        "options-type",
        `options on a ${definition.type} key`,
        'remove the options, or declare the key as "select"',
      );
    }
  } else if (!isStrings(options) || options.length === 0) {
    report(
      "select-options",
      "a select key needs options, a list of at least one string",
      'add options: ["first", "second"]',
    );
  } else if (new Set(options).size < options.length) {
    report(
      "select-options",
      `the options ${quoted(options)} repeat a value`,
      "list each value once",
    );
  }
}

export function boundsProblems(key: Subject, report: Report): void {
  const { definition, options } = key;
  const { bounds } = options;
  if (bounds === undefined || !hasType(key)) return;
  if (definition.type !== "number") {
    report(
      "bounds-type",
      `bounds on a ${definition.type} key`,
      'remove the bounds, or declare the key as "number"',
    );
    return;
  }
  if (!isBounds(bounds) || Object.keys(bounds).length > 2) {
    report(
      "bounds-shape",
      "bounds is not { min, max } with two finite numbers",
      "give both ends, for example { min: 1, max: 100 }",
    );
    return;
  }
  if (bounds.min > bounds.max) {
    report(
      "bounds-order",
      `bounds.min ${bounds.min} is above bounds.max ${bounds.max}`,
      "swap the two",
    );
    return;
  }
  const outside = outOfBounds(bounds, definition.default);
  if (outside !== undefined) {
    const fix = outside.includes("below")
      ? "raise the default or lower the bound"
      : "lower the default or raise the bound";
    report("default-bounds", `default ${named(definition, definition.default)} ${outside}`, fix);
  }
}

export function defaultProblems(key: Subject, report: Report): void {
  const { definition } = key;
  if (definition.default === undefined || !hasType(key)) return;
  const mismatch = typeMismatch(definition, definition.default);
  if (mismatch !== undefined) {
    report(
      "default-type",
      `default ${named(definition, definition.default)} ${mismatch}`,
      "change the default or the type of the key",
    );
  }
}

export function computedProblems(
  { definition, options: { computed } }: Subject,
  report: Report,
): void {
  if (computed === undefined) return;
  if (typeof computed !== "function") {
    report(
      "computed-function",
      `computed ${quoted(computed)} is not a function`,
      "pass async (ctx) => value",
    );
  }
  if (definition.encrypted) {
    report(
      "computed-encrypted",
      "an encrypted key cannot be computed",
      "remove computed or encrypted",
    );
  }
}

export function allowPerRequestProblems({ definition, options }: Subject, report: Report): void {
  if (!definition.allowPerRequest) return;
  const fix = "remove allowPerRequest";
  if (definition.type === "text") report("per-request-text", "allowPerRequest on a text key", fix);
  if (definition.encrypted)
    report("per-request-encrypted", "allowPerRequest on an encrypted key", fix);
  if (definition.type === "number" && options["bounds"] === undefined) {
    report(
      "per-request-bounds",
      "allowPerRequest on a number without bounds",
      "add bounds: { min, max }",
    );
  }
}

export function formerlyProblems(
  { id, options: { formerly } }: Subject,
  report: Report,
  keys: readonly RegisteredConfigKey[],
): void {
  for (const name of [formerly ?? []].flat()) {
    const isTaken = keys.some(
      (key) =>
        key.id === name || (key.id !== id && key.definition?.formerly?.includes(String(name))),
    );
    if (isKeyId(name) && !isTaken) continue;
    const wrong = isTaken ? "is another key's" : "is no identifier";
    report("formerly", `formerly ${quoted(name)} ${wrong}`, "name what this key was before");
  }
}

export function accessProblems({ options }: Subject, report: Report): void {
  const { access } = options;
  const rules = access === undefined ? options : access;
  if (!isObject(rules)) {
    report(
      "access-rule",
      `access ${quoted(access)} is not { read, write }`,
      "use access: { read: access.admin, write: access.systemAdmin }",
    );
    return;
  }
  if (access !== undefined) {
    if (options["read"] !== undefined || options["write"] !== undefined) {
      report("access-twice", "read or write stands beside access", "move it under access");
    }
    for (const name of Object.keys(rules)) {
      if (name !== "read" && name !== "write") {
        report(
          "unknown-option",
          `unknown option ${quoted(name)} under access`,
          "remove it; known options are read, write",
        );
      }
    }
  }
  for (const name of ["read", "write"]) {
    const rule = rules[name];
    if (rule !== undefined && !isAccessRule(rule)) {
      report(
        "access-rule",
        `${name} ${quoted(rule)} is not an access rule`,
        'use a rule of access, for example access.roles("editor")',
      );
    }
  }
}

function hasType({ definition }: Subject): boolean {
  return types.includes(definition.type);
}
