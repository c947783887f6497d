import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { Clock } from "../../base/process/clock.ts";
import { developmentKeyRing, type KeyRing, parseKeyRing } from "../../base/secrets/key-ring.ts";
import type { AppOverrides } from "../../parts/config/declare/app-overrides.ts";
import { parameterOverrides } from "../../parts/config/declare/parameter-overrides.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import type { ParameterReader } from "../runtime/adapters.ts";

/** Pause after SSM failed or returned invalid parameters, in milliseconds. */
const pauseMs = 5_000;

export interface BootParameters {
  /** Overrides from `buildServer({ config })` and from SSM. SSM takes precedence. */
  readonly overrides: AppOverrides;
  /** Key ring. Absent if the server neither names one nor has a development secret. */
  readonly keyRing: KeyRing | undefined;
}

export interface BootParameterLoader {
  /**
   * Checks that parameters may be loaded now. @throws FrameworkError (503) if `load` failed less
   * than 5 seconds ago.
   */
  assertDue(): void;
  /**
   * Loads the app-boot overrides and the key ring. @throws FrameworkError `config_unavailable`
   * (503). Its cause is the failure of SSM, or a BootError with every problem of the parameters.
   */
  load(reader: ParameterReader | undefined): Promise<BootParameters>;
}

/** Creates the loader of one runtime. `developmentSecret` replaces a missing key ring. */
export function createBootParameterLoader(
  { options, registry }: DeclaredServer,
  clock: Clock,
  developmentSecret: string | undefined,
): BootParameterLoader {
  const { config = {}, ssm, keyRing } = options;
  let failed: { readonly atMs: number; readonly error: FrameworkError } | undefined;

  const readOverrides = async (reader: ParameterReader, path: string) => {
    const { overrides, problems } = parameterOverrides(registry, path, await reader.read(path));
    return { overrides: { ...config, ...overrides }, problems };
  };

  return {
    assertDue: () => {
      if (failed === undefined) return;
      const elapsedMs = clock.now() - failed.atMs;
      if (elapsedMs >= 0 && elapsedMs < pauseMs) throw failed.error;
    },
    load: async (reader) => {
      try {
        const [{ overrides, problems }, ring] = await Promise.all([
          ssm === undefined || reader === undefined
            ? { overrides: config, problems: [] }
            : readOverrides(reader, ssm.path),
          keyRing === undefined || reader === undefined
            ? {
                keyRing:
                  developmentSecret === undefined
                    ? undefined
                    : developmentKeyRing(developmentSecret),
              }
            : readKeyRing(reader, keyRing.parameter, developmentSecret),
        ]);
        const all = [...problems, ...("problem" in ring ? [ring.problem] : [])];
        if ("problem" in ring || all.length > 0) throw new BootError(all);
        failed = undefined;
        return { overrides, keyRing: ring.keyRing };
      } catch (cause) {
        const error = new FrameworkError(
          "config_unavailable",
          "Configuration is not available at the moment",
          {
            cause,
            headers: { "retry-after": String(pauseMs / 1_000) },
          },
        );
        failed = { atMs: clock.now(), error };
        throw error;
      }
    },
  };
}

/**
 * Reads the key ring. Derives a missing one from `developmentSecret`, if given. No message contains
 * its value.
 *
 * @throws Error if SSM fails.
 */
export async function readKeyRing(
  reader: ParameterReader,
  name: string,
  developmentSecret?: string,
): Promise<{ readonly keyRing: KeyRing } | { readonly problem: BootProblem }> {
  const parameter = await reader.get(name);
  const refused = (rule: string, message: string, fix: string) => ({
    problem: { feature: "", key: name, rule, message, fix },
  });
  if (parameter === undefined) {
    if (developmentSecret !== undefined) return { keyRing: developmentKeyRing(developmentSecret) };
    return refused(
      "key-ring-missing",
      "there is no such parameter",
      `make it: keelson key-ring create --parameter ${name}`,
    );
  }
  if (!parameter.secure) {
    return refused(
      "key-ring-readable",
      "the key ring is not a SecureString",
      "store it as one, with new keys",
    );
  }
  try {
    return { keyRing: parseKeyRing(parameter.value) };
  } catch (error) {
    // The cast is safe: `parseKeyRing` throws only TypeErrors.
    return refused(
      "key-ring-invalid",
      (error as TypeError).message,
      "restore its version of before, or repair it",
    );
  }
}
