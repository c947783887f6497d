import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { BootRule } from "../../base/errors/boot-rule.ts";
import {
  eventType,
  type RawOptions,
  type Report,
  unknownOptions,
} from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";

export interface Declaring {
  readonly feature: string;
  readonly report: Report;
}

export type Problem = (rule: BootRule, message: string, fix: string) => void;

export interface Requirement {
  readonly accepts: (value: unknown) => boolean;
  readonly rule: BootRule;
  readonly wrong?: string | ((value: unknown) => string);
  readonly fix: string;
  readonly isRequired?: boolean;
}

/** By option. */
export type Requirements = Readonly<Record<string, Requirement>>;

export function problemsOf(key: string, report: Report): Problem {
  return (rule, message, fix) => report({ key, rule, message, fix });
}

export function knownOptions(
  key: string,
  options: unknown,
  known: readonly string[],
  report: Report,
): RawOptions {
  // A string would have an unknown option for each of its characters.
  const given = (typeof options === "string" ? {} : (options ?? {})) as RawOptions; // safe cast: reading any of its members never throws
  unknownOptions(key, given, known, report);
  return given;
}

export function requireOptions(
  given: RawOptions,
  requirements: Requirements,
  problem: Problem,
): void {
  for (const [option, requirement] of Object.entries(requirements))
    requireValue(`\`${option}\``, given[option], requirement, problem);
}

export function requireValue(
  what: string,
  value: unknown,
  { accepts, rule, wrong = `is ${quoted(value)}`, fix, isRequired = false }: Requirement,
  problem: Problem,
): void {
  if (accepts(value) || (value === undefined && !isRequired)) return;
  problem(rule, `${what} ${typeof wrong === "string" ? wrong : wrong(value)}`, fix);
}

export const aSchema: Requirement = Object.freeze({
  accepts: isStandardSchema,
  rule: "schema",
  wrong: "is not a Standard Schema",
  fix: "pass a schema of zod, valibot or arktype",
});

export function aFunction(fix = "pass async (ctx, payload) => ..."): Requirement {
  const accepts = (value: unknown) => typeof value === "function";
  return { accepts, rule: "handler", wrong: "is not a function", fix };
}

export function required(requirement: Requirement): Requirement {
  return { ...requirement, isRequired: true };
}

function isStandardSchema(value: unknown): boolean {
  const schema = value as Partial<StandardSchemaV1> | null | undefined; // safe: only its type is read
  return typeof schema?.["~standard"]?.validate === "function";
}

export function twoWords(rule: BootRule, form: string, example: string): Requirement {
  const wrong = (name: unknown) => `${quoted(name)} is not <entity>.<${form}>`;
  const fix = `use two kebab-case words, for example "${example}"`;
  return { accepts: isTwoWords, rule, wrong, fix, isRequired: true };
}

export function named(name: unknown): string {
  return typeof name === "string" ? name : quoted(name);
}

export function isWord(name: unknown): boolean {
  return typeof name === "string" && /^[a-z][a-z0-9-]{0,62}$/.test(name);
}

export function isTwoWords(name: unknown): boolean {
  return typeof name === "string" && eventType.test(name);
}
