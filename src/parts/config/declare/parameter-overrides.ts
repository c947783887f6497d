import type { BootProblem } from "../../../base/errors/boot.ts";
import { nearest, quoted } from "../../../base/errors/quoted.ts";
import { type AppOverrides, overrideProblems } from "./app-overrides.ts";
import { isDefinition } from "./declaration.ts";
import {
  type ConfigKeyDefinition,
  type ConfigKeyRegistry,
  configKeyId,
  type RegisteredConfigKey,
  successorOf,
} from "./key.ts";
import { decimalFrom } from "./value-check.ts";

export interface ConfigParameter {
  /** Full name, for example `/app/files/max-upload-size-mb`. */
  readonly name: string;
  readonly value: string;
  /** Whether it is a SecureString. */
  readonly secure: boolean;
}

/**
 * The name of a parameter is `<path>/<feature>/<key name>`, with the key name in kebab case or as declared.
 * A parameter with the former name of a key applies only if no parameter has the current name, so that
 * parameters can be renamed while processes of both versions start. Never throws: problems name the parameter, but
 * never contain the value of an encrypted key or a SecureString.
 */
export function parameterOverrides(
  registry: ConfigKeyRegistry,
  path: string,
  parameters: readonly ConfigParameter[],
): { readonly overrides: AppOverrides; readonly problems: readonly BootProblem[] } {
  const overrides: Record<string, unknown> = Object.create(null);
  const problems: BootProblem[] = [];
  const origins = new Map<string, string>();
  const named = parameters.map((parameter) => ({
    parameter,
    ...keyOf(registry, path, parameter.name),
  }));
  for (const { parameter, key, isFormer } of named) {
    const { name, value: text, secure } = parameter;
    const shown = printable(name);
    if (key === undefined) {
      problems.push(unknownKey(registry, path, name));
      continue;
    }
    if (isFormer && named.some((other) => other.key === key && !other.isFormer)) continue;
    const { feature, id } = key;
    const other = origins.get(id);
    if (other !== undefined) {
      const message = `${id} is given by ${quoted(other)} too`;
      const fix = "delete one of the two";
      problems.push({ feature, key: shown, rule: "parameter-twice", message, fix });
      continue;
    }
    origins.set(id, name);
    const value = parsed(key.definition, text);
    const definition = secure ? { ...key.definition, encrypted: true } : key.definition;
    const found = overrideProblems({ ...key, definition }, value);
    if (found.length === 0) overrides[id] = value;
    for (const problem of found)
      problems.push({ ...problem, key: shown, message: `${id}: ${problem.message}` });
  }
  return { overrides, problems };
}

export function formerParameters(
  registry: ConfigKeyRegistry,
  path: string,
  parameters: readonly ConfigParameter[],
) {
  return parameters.flatMap((parameter) => {
    const { key, isFormer } = keyOf(registry, path, parameter.name);
    if (key === undefined || isFormer !== true) return [];
    const isRead = !parameters.some(
      (other) => keyOf(registry, path, other.name).key === key && other !== parameter,
    );
    return [{ ...parameter, today: nameOf(path, key), isRead }];
  });
}

function keyOf(
  registry: ConfigKeyRegistry,
  path: string,
  name: string,
): { readonly key?: RegisteredConfigKey | undefined; readonly isFormer?: boolean } {
  const [feature, keyName, ...rest] = name.startsWith(`${path}/`)
    ? name.slice(path.length + 1).split("/")
    : [];
  if (feature === undefined || keyName === undefined || rest.length > 0) return {};
  const id = configKeyId(feature, keyName);
  const key = registry.configKeys.get(id);
  if (key === undefined) return { key: successorOf(id, registry), isFormer: true };
  return isDefinition(key.definition) && [key.name, kebabNameOf(key)].includes(keyName)
    ? { key }
    : {};
}

function unknownKey({ configKeys }: ConfigKeyRegistry, path: string, name: string): BootProblem {
  const known = [...configKeys.values()].map((key) => nameOf(path, key));
  const meant = nearest(name, known);
  const fix = meant === undefined ? "delete it, or name a declared key" : `did you mean ${meant}?`;
  const message = `no feature declares a key for it; names are ${path}/<feature>/<key name>`;
  return { feature: "", key: printable(name), rule: "parameter-unknown", message, fix };
}

function nameOf(path: string, key: RegisteredConfigKey): string {
  return `${path}/${key.feature}/${kebabNameOf(key)}`;
}

function kebabNameOf({ id, feature }: RegisteredConfigKey): string {
  return id.slice(configKeyId(feature, "").length);
}

/** Returns an invalid value as the original string, which the check then rejects. */
function parsed({ type }: Pick<ConfigKeyDefinition, "type">, text: string): unknown {
  const trimmed = text.trim(); // editors and files add a trailing line break
  switch (type) {
    case "number":
      return decimalFrom(text) ?? text;
    case "boolean":
      return trimmed === "true" ? true : trimmed === "false" ? false : text;
    case "select":
      return trimmed;
    default:
      return text;
  }
}

function printable(name: string): string {
  return /^[\w./-]{1,1011}$/.test(name) ? name : quoted(name);
}
