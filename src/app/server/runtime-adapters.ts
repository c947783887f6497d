import { BootError } from "../../base/errors/boot.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import { createConfigResolver } from "../../parts/config/read/resolver.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { proofProblems } from "../registry/option-problems.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { OpeningAdapters, Runtime } from "../runtime/runtime.ts";
import { loadParameters } from "./boot-parameters.ts";
import type { ServerInternals } from "./server.ts";

/**
 * Adapters of one runtime, opened in two steps: the first suffices for configuration and claims, the
 * second loads the SDK. After a failure, the next caller tries again.
 */
export class RuntimeAdapters implements OpeningAdapters {
  readonly #open: () => Promise<Adapters>;
  readonly #readers: ReadonlySet<HandlerDeclaration>;
  #first: Lazy<Adapters>;
  all: Lazy<Adapters>;

  /** @param readers - handlers that need only the first step. */
  constructor(open: () => Promise<Adapters>, readers: ReadonlySet<HandlerDeclaration>) {
    this.#open = open;
    this.#readers = readers;
    [this.#first, this.all] = this.#steps();
  }

  open(): Promise<Adapters> {
    return this.all.open();
  }

  openForReads(): Promise<Adapters> {
    return this.#first.open();
  }

  openFor(handler: HandlerDeclaration): Adapters | Promise<Adapters> {
    if (!this.#readers.has(handler)) return this.all.open();
    return this.#first.value ?? this.#first.open();
  }

  async close(): Promise<void> {
    const { opening } = this.#first;
    if (opening === undefined) return;
    const adapters = await opening;
    [this.#first, this.all] = this.#steps();
    await adapters.close();
  }

  #steps(): [first: Lazy<Adapters>, all: Lazy<Adapters>] {
    const first = lazy(this.#open);
    const all = lazy(async () => {
      const adapters = await first.open();
      await adapters.load?.();
      return adapters;
    });
    return [first, all];
  }
}

/**
 * Shortest and longest pause after SSM failed or returned invalid parameters, in milliseconds. It is
 * random, so that processes that a deployment starts together do not ask together again.
 */
const [leastPauseMs, mostPauseMs] = [5_000, 7_000];

/**
 * Returns the function that opens the adapters and loads the parameters of SSM. If it cannot load
 * them, this call and all calls of the next five to seven seconds fail with `config_unavailable` (503).
 */
export function openingWithParameters(
  state: ServerInternals,
  developmentSecret: string | undefined,
  runtimeOf: () => Pick<Runtime, "clock" | "log" | "secrets"> & { resolver: Runtime["resolver"] },
  open: () => Promise<Adapters>,
): () => Promise<Adapters> {
  let failed:
    | { readonly atMs: number; readonly pauseMs: number; readonly error: FrameworkError }
    | undefined;

  return async () => {
    const runtime = runtimeOf();
    const { clock, log, secrets } = runtime;
    if (failed !== undefined) {
      const elapsedMs = clock.now() - failed.atMs;
      if (elapsedMs >= 0 && elapsedMs < failed.pauseMs) throw failed.error;
    }
    const adapters = await open();
    try {
      const askedMs = clock.now();
      const loading = loadParameters(state, adapters.parameters, developmentSecret);
      const { overrides, keyRing } = await loading.catch((cause: unknown) => {
        const message = "Configuration is not available at the moment";
        const headers = { "retry-after": String(mostPauseMs / 1_000) };
        const error = new FrameworkError("config_unavailable", message, { cause, headers });
        const pauseMs = leastPauseMs + Math.random() * (mostPauseMs - leastPauseMs);
        failed = { atMs: clock.now(), pauseMs, error };
        throw error;
      });
      failed = undefined;
      runtime.resolver = createConfigResolver({ appOverrides: overrides });
      state.resolver = runtime.resolver;
      const problems = proofProblems(state.options, keyRing !== undefined);
      if (problems.length > 0) throw new BootError(problems);
      secrets.begin(keyRing, askedMs);
      // In a list, the logger would redact the key after a name such as `webhook-secret`.
      const keys = [...state.registry.configKeys.values()]
        .filter(({ definition }) => definition.encrypted)
        .map(({ id }) => id)
        .join(", ");
      if (keyRing === undefined && keys !== "") log.warn("config.no_key_ring", { keys });
    } catch (error) {
      await adapters.close();
      throw error;
    }
    return adapters;
  };
}
