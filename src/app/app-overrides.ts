import type { ParameterReader } from "../aws/ssm.ts";
import type { AppOverrides } from "../config/overrides.ts";
import { parameterOverrides } from "../config/parameters.ts";
import type { Clock } from "../context/clock.ts";
import { BootError } from "../errors/boot.ts";
import { FrameworkError } from "../errors/errors.ts";
import type { ServerInternals } from "./server.ts";

/** How long SSM is left alone after it failed or held what is not valid. */
const pauseMs = 5_000;

/** Loads a server's app-boot overrides. */
export interface AppOverrideLoader {
  /** @throws FrameworkError 503, while the pause after a failure lasts. */
  assertDue(): void;
  /**
   * The overrides of `buildServer({ config })` and of SSM, which wins.
   *
   * @throws FrameworkError `config_unavailable` (503), its cause the failure of SSM, or a BootError
   * with every problem of the parameters.
   */
  load(reader: ParameterReader | undefined): Promise<AppOverrides>;
}

/** Creates the {@link AppOverrideLoader} of one runtime. */
export function createAppOverrideLoader({ options, registry }: ServerInternals, clock: Clock): AppOverrideLoader {
  const config = options.config ?? {};
  const path = options.ssm?.path;
  let failed: { readonly atMs: number; readonly error: FrameworkError } | undefined;

  return {
    assertDue: () => {
      if (failed === undefined) return;
      const elapsedMs = clock.now() - failed.atMs;
      if (elapsedMs >= 0 && elapsedMs < pauseMs) throw failed.error;
    },
    load: async (reader) => {
      if (path === undefined || reader === undefined) return config;
      try {
        const { overrides, problems } = parameterOverrides(registry, path, await reader.read(path));
        if (problems.length > 0) throw new BootError(problems);
        failed = undefined;
        return { ...config, ...overrides };
      } catch (cause) {
        const error = new FrameworkError("config_unavailable", "Configuration is not available at the moment", {
          cause,
          headers: { "retry-after": String(pauseMs / 1_000) },
        });
        failed = { atMs: clock.now(), error };
        throw error;
      }
    },
  };
}
