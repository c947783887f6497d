import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import type { BootRule } from "../../base/errors/boot-rule.ts";
import { developmentKeyRing, type KeyRing, parseKeyRing } from "../../base/secrets/key-ring.ts";
import { parameterOverrides } from "../../parts/config/declare/parameter-overrides.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import type { ParameterReader } from "../runtime/adapters.ts";

/**
 * Loads the app-boot overrides and the key ring, if the server names one or has a development
 * secret. Overrides from SSM take precedence.
 *
 * @throws Error if SSM fails. BootError with every problem of the parameters.
 */
export async function loadParameters(
  { options, registry }: Pick<DeclaredServer, "options" | "registry">,
  reader: ParameterReader | undefined,
  developmentSecret: string | undefined,
) {
  const { config = {}, ssm, keyRing: named } = options;
  const readOverrides = async (reader: ParameterReader, path: string) => {
    const { overrides, problems } = parameterOverrides(registry, path, await reader.read(path));
    return { overrides: { ...config, ...overrides }, problems };
  };
  const [{ overrides, problems }, ring] = await Promise.all([
    ssm === undefined || reader === undefined
      ? { overrides: config, problems: [] }
      : readOverrides(reader, ssm.path),
    named === undefined || reader === undefined
      ? { keyRing: derivedRing(developmentSecret) }
      : readKeyRing(reader, named.parameter, developmentSecret),
  ]);
  if ("problem" in ring) throw new BootError([...problems, ring.problem]);
  if (problems.length > 0) throw new BootError(problems);
  return { overrides, keyRing: ring.keyRing };
}

/** Derives a missing key ring from `developmentSecret`. No message contains its value. */
export async function readKeyRing(
  reader: ParameterReader,
  name: string,
  developmentSecret?: string,
): Promise<{ readonly keyRing: KeyRing } | { readonly problem: BootProblem }> {
  const parameter = await reader.get(name);
  const refused = (rule: BootRule, message: string, fix: string) => ({
    problem: { feature: "", key: name, rule, message, fix },
  });
  if (parameter === undefined) {
    const keyRing = derivedRing(developmentSecret);
    if (keyRing !== undefined) return { keyRing };
    const fix = `make it: keelson key-ring create --parameter ${name}`;
    return refused("key-ring-missing", "there is no such parameter", fix);
  }
  if (!parameter.secure) {
    const message = "the key ring is not a SecureString";
    return refused("key-ring-readable", message, "store it as one, with new keys");
  }
  try {
    return { keyRing: parseKeyRing(parameter.value) };
  } catch (error) {
    // The cast is safe: `parseKeyRing` throws only TypeErrors.
    const { message } = error as TypeError;
    return refused("key-ring-invalid", message, "restore its version of before, or repair it");
  }
}

function derivedRing(developmentSecret: string | undefined): KeyRing | undefined {
  return developmentSecret === undefined ? undefined : developmentKeyRing(developmentSecret);
}
