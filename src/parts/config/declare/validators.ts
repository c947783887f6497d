import { BootError, type BootProblem } from "../../../base/errors/boot.ts";
import { isRecord } from "../../../base/errors/option-table.ts";
import { isDefinition } from "./definition.ts";
import type { ConfigKeyRegistry, RegisteredConfigKey } from "./key.ts";
import {
  allowPerRequestProblems,
  boundsProblems,
  computedProblems,
  everyRule,
  type Rule,
} from "./key-rules.ts";

/**
 * Checks the bounds of every key (specification 2.2): only number keys have bounds, `min` is not
 * above `max`, and the default is within the bounds.
 *
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyBounds(registry: ConfigKeyRegistry): void {
  validate(registry, boundsProblems);
}

/**
 * Checks every computed key (specification 2.2): `computed` is a function, and the key is not
 * encrypted.
 *
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyComputed(registry: ConfigKeyRegistry): void {
  validate(registry, computedProblems);
}

/**
 * Checks every key that a request may override (specification 2.2): it is not a text key, not
 * encrypted, and not a number without bounds.
 *
 * @throws BootError with the problems of all keys.
 */
export function validateConfigKeyAllowPerRequest(registry: ConfigKeyRegistry): void {
  validate(registry, allowPerRequestProblems);
}

function validate(registry: ConfigKeyRegistry, rule: Rule): void {
  const keys = [...registry.configKeys.values()];
  const problems = keys.flatMap((key) => configKeyProblems(key, keys, [rule]));
  if (problems.length > 0) throw new BootError(problems);
}

export function configKeyProblems(
  key: RegisteredConfigKey,
  keys: readonly RegisteredConfigKey[] = [],
  rules = everyRule,
): BootProblem[] {
  const problems: BootProblem[] = [];
  const report = (rule: string, message: string, fix: string) =>
    problems.push({ feature: key.feature, key: key.id, rule, message, fix });
  if (isDefinition(key.definition)) {
    const { options } = key.definition.declared;
    const subject = { ...key, options: isRecord(options) ? options : {} };
    for (const rule of rules) rule(subject, report, keys);
  } else {
    const message = "it was not made by one of the three factories";
    const fix = "declare it with createSystemConfig, createTenantConfig or createUserConfig";
    report("not-a-declaration", message, fix);
  }
  return problems;
}
