import { BootError, type BootProblem } from "../../../base/errors/boot.ts";
import { isDefinition, isObject } from "./definition.ts";
import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";
import {
  accessProblems,
  allowPerRequestProblems,
  boundsProblems,
  computedProblems,
  defaultProblems,
  formerlyProblems,
  nameProblems,
  optionsProblems,
  type Rule,
} from "./key-rules.ts";

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

export function configKeyProblems(
  key: RegisteredConfigKey,
  keys: readonly RegisteredConfigKey[] = [],
): BootProblem[] {
  return problemsOf(key, everyRule, keys);
}

/**
 * Checks the bounds of every key (specification 2.2): that only numbers have them, that they are a
 * range, and that they include the default.
 *
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyBounds(registry: ConfigKeyRegistry): void {
  validate(registry, boundsProblems);
}

/**
 * Checks the computed keys (specification 2.2): that `computed` is a function and the key is not
 * encrypted.
 *
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyComputed(registry: ConfigKeyRegistry): void {
  validate(registry, computedProblems);
}

/**
 * Checks the keys that a request may override (specification 2.2): no text, no encrypted key, and
 * no number without bounds.
 *
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyAllowPerRequest(registry: ConfigKeyRegistry): void {
  validate(registry, allowPerRequestProblems);
}

function validate(registry: ConfigKeyRegistry, rule: Rule): void {
  const problems = [...registry.configKeys.values()].flatMap((key) => problemsOf(key, [rule]));
  if (problems.length > 0) throw new BootError(problems);
}

function problemsOf(
  key: RegisteredConfigKey,
  rules: readonly Rule[],
  keys: readonly RegisteredConfigKey[] = [],
): BootProblem[] {
  const problems: BootProblem[] = [];
  const report = (rule: string, message: string, fix: string) =>
    problems.push({ feature: key.feature, key: key.id, rule, message, fix });
  if (isDefinition(key.definition)) {
    const { options } = key.definition.declared;
    for (const rule of rules)
      rule({ ...key, options: isObject(options) ? options : {} }, report, keys);
  } else {
    report(
      "not-a-declaration",
      "it was not made by one of the three factories",
      "declare it with createSystemConfig, createTenantConfig or createUserConfig",
    );
  }
  return problems;
}
