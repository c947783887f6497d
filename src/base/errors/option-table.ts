import type { BootProblem } from "./boot.ts";
import { nearest, quoted } from "./quoted.ts";

/** Returns `undefined` if the value is accepted, otherwise a description of accepted values. */
export type OptionCheck = (value: unknown) => string | undefined;

export type OptionTable = Readonly<Record<string, OptionCheck>>;

export type OptionProblem = Pick<BootProblem, "key" | "rule" | "message" | "fix">;

/** `path` prefixes names. Never throws. */
export function tableProblems(
  path: string,
  options: unknown,
  table: OptionTable,
  call = path,
): OptionProblem[] {
  if (options === undefined) return [];
  if (!isRecord(options)) {
    const message = "it is not an object";
    return [{ key: call, rule: "option-type", message, fix: "pass an object" }];
  }
  return Object.entries(options).flatMap(([name, given]): OptionProblem[] => {
    const key = path === "" ? name : `${path}.${name}`;
    const check = Object.hasOwn(table, name) ? table[name] : undefined;
    if (check === undefined) {
      const message = `unknown option ${JSON.stringify(name)}`;
      return [{ key, rule: "unknown-option", message, fix: knownOnes(name, Object.keys(table)) }];
    }
    const wanted = given === undefined ? undefined : check(given);
    if (wanted === undefined) return [];
    const shown = name === "secret" ? typeNamed(given) : described(given);
    const message = `${shown} is not allowed`;
    return [{ key, rule: "option-type", message, fix: `use ${wanted}` }];
  });
}

/** For an option that another check covers. */
export const unchecked: OptionCheck = () => undefined;

export const flag: OptionCheck = (value) =>
  typeof value === "boolean" ? undefined : "true or false";

export function oneOf(values: readonly unknown[], wanted: string): OptionCheck {
  return kind((value) => values.includes(value), wanted);
}

export function text(pattern: RegExp, wanted: string): OptionCheck {
  return kind((value) => typeof value === "string" && pattern.test(value), wanted);
}

export function whole(least: number, most: number, wanted: string): OptionCheck {
  return kind(
    (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
    wanted,
  );
}

export function kind(accepts: (value: unknown) => boolean, wanted: string): OptionCheck {
  return (value) => (accepts(value) ? undefined : wanted);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Shows a value that is not a secret on one bounded line. */
export function described(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : typeNamed(value);
}

/** For a secret: only its type. */
export function typeNamed(value: unknown): string {
  return `a value of type ${value === null ? "null" : typeof value}`;
}

/** @throws TypeError that names `call`, if `options` is not an object or has an unknown option. */
export function assertKnownOptions(call: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(
      `${call}: the options are ${quoted(options)}; pass an object with ${known.join(", ")}`,
    );
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`${call}: unknown option ${quoted(unknown)}; ${knownOnes(unknown, known)}`);
}

function knownOnes(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const all = `known are ${known.join(", ")}`;
  return meant === undefined ? all : `did you mean \`${meant}\`? ${all}`;
}

/** Not validated: plain JavaScript can pass anything. */
export type RawOptions = Readonly<Record<string, unknown>>;

export type Report = (problem: Omit<BootProblem, "feature">) => void;

export function unknownOptions(
  key: string,
  options: RawOptions,
  known: readonly string[],
  report: Report,
): void {
  for (const name of Object.keys(options ?? {})) {
    if (!known.includes(name)) {
      report({
        key,
        rule: "unknown-option",
        message: `unknown option ${JSON.stringify(name)}`,
        fix: knownOnes(name, known),
      });
    }
  }
}

/** Format of an event type (specification 2.8). */
export const eventType = /^[a-z][a-z0-9-]{0,62}\.[a-z][a-z0-9-]{0,62}$/;
