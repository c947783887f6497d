import { BootError, type BootProblem } from "../../../base/errors/boot.ts";
import type { BootRule } from "../../../base/errors/boot-rule.ts";
import { placed } from "../../../base/errors/call-site.ts";
import { nearest, quoted } from "../../../base/errors/quoted.ts";
import { isDefinition } from "./declaration.ts";
import {
  type ConfigKeyHandle,
  type ConfigKeyRegistry,
  type RegisteredConfigKey,
  successorOf,
} from "./key.ts";
import { named, outOfBounds, typeMismatch } from "./value-check.ts";

/** Values set when the server is built (app-boot overrides), by key identifier. */
export type AppOverrides = Readonly<Record<string, unknown>>;

/**
 * Checks app-boot overrides against the declared keys (specification 2.2 and 4.1, rule 4): rejects
 * unknown and computed keys, wrong types, unknown options and numbers out of bounds. Messages never
 * contain the value of an encrypted key.
 * @throws BootError with every problem.
 * @example
 * validateAppOverrides(createRegistry([files]), { "files:config:max-upload-size-mb": 50 });
 */
export function validateAppOverrides(registry: ConfigKeyRegistry, overrides: AppOverrides): void {
  const problems = appOverrideProblems(registry, overrides);
  if (problems.length > 0) throw new BootError(placed(problems));
}

export function appOverrideProblems(
  registry: ConfigKeyRegistry,
  overrides: AppOverrides,
): BootProblem[] {
  if (!isPlainObject(overrides)) {
    const message = `${quoted(overrides)} is not a plain object of values by key identifier`;
    const fix = 'pass { "<feature>:config:<name>": <value> }';
    return [{ feature: "", key: "config", rule: "override-object", message, fix }];
  }
  return Object.entries(overrides).flatMap(([id, value]) => {
    const key = registry.configKeys.get(id);
    return key === undefined ? unknownKey(registry, id) : overrideProblems(key, value);
  });
}

function unknownKey(registry: ConfigKeyRegistry, id: string): BootProblem {
  const meant = successorOf(id, registry)?.id ?? nearest(id, registry.configKeys.keys());
  const fix =
    meant === undefined ? "use the identifier of a declared key" : `did you mean ${meant}?`;
  const message = "the override is for a key that no feature declares";
  return { feature: "", key: printable(id), rule: "override-unknown", message, fix };
}

export function overrideProblems(
  { id: key, feature, definition }: RegisteredConfigKey,
  value: unknown,
): BootProblem[] {
  // The validators report an invalid declaration, so the override is not checked.
  if (!isDefinition(definition)) return [];
  const problems: BootProblem[] = [];
  const report = (rule: BootRule, message: string, fix: string) =>
    problems.push({ feature, key, rule, message, fix });
  if (definition.computed !== undefined) {
    const message = "a computed key cannot be overridden at boot";
    report("override-computed", message, "remove the override or computed");
  }
  const given = `override ${named(definition, value)}`;
  const mismatch = typeMismatch(definition, value);
  if (mismatch !== undefined)
    report("override-type", `${given} ${mismatch}`, `pass a ${definition.type} value`);
  const outside = outOfBounds(definition.bounds, value);
  if (outside !== undefined)
    report("override-bounds", `${given} ${outside}`, "change the override or the bounds");
  return problems;
}

/** Other text could flood or forge an error message. */
function printable(id: string): string {
  return /^[\w:.-]{1,256}$/.test(id) ? id : quoted(id);
}

function isPlainObject(value: unknown): value is AppOverrides {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

interface NamedExports {
  readonly name: string;
}

/**
 * App-boot overrides of features, by key identifier. The compiler checks the values of keys whose
 * handles a feature returns, and editors complete their identifiers; `buildServer` checks the rest.
 */
export type OverridesOf<Features extends readonly NamedExports[]> = Readonly<
  Record<string, unknown>
> & {
  readonly [Override in KnownOverride<Features[number]> as Override["id"]]?: Override["value"];
};

type KnownOverride<Feature extends NamedExports> = Feature extends NamedExports
  ? string extends Feature["name"]
    ? never
    : {
        readonly [Member in keyof Feature]: OverrideOfHandles<Feature["name"], Feature[Member]>;
      }[keyof Feature]
  : never;

type OverrideOfHandles<Name extends string, Handles> =
  Handles extends Readonly<Record<string, ConfigKeyHandle<unknown>>>
    ? {
        [Key in keyof Handles & string]: {
          readonly id: `${Name}:config:${KebabCase<Key>}`;
          readonly value: Handles[Key] extends ConfigKeyHandle<infer Value>
            ? Exclude<Value, undefined>
            : never;
        };
      }[keyof Handles & string]
    : never;

/** As `configKeyId` does at run time. */
type KebabCase<
  Name extends string,
  Done extends string = "",
  Before extends string = "",
> = Name extends `${infer Letter}${infer Rest}`
  ? KebabCase<
      Rest,
      `${Done}${BeginsWord<Before, Letter, Rest> extends true ? "-" : ""}${Lowercase<Letter>}`,
      Letter
    >
  : Done;

type BeginsWord<Before extends string, Letter extends string, Rest extends string> =
  IsCapital<Letter> extends true
    ? Before extends "" | "-" | "_" | "$"
      ? false
      : IsCapital<Before> extends true
        ? Rest extends `${infer Next}${string}`
          ? IsSmall<Next>
          : false
        : true
    : false;

type IsCapital<Letter extends string> = Letter extends Lowercase<Letter> ? false : true;
type IsSmall<Letter extends string> = Letter extends Uppercase<Letter> ? false : true;
