import { BootError } from "../../base/errors/boot.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import { createConfigResolver } from "../../parts/config/read/resolver.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { proofProblems } from "../registry/option-problems.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { OpeningAdapters, Runtime } from "../runtime/runtime.ts";
import type { BootParameterLoader } from "./boot-parameters.ts";
import type { ServerInternals } from "./server.ts";

/**
 * Adapters of one runtime, opened in two steps: the first is enough to read configuration, the
 * second loads the SDK. After a failure, the next caller tries the step again.
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

/** Opens the adapters and loads the overrides and the key ring from SSM. */
export async function openWithParameters(
  runtime: Pick<Runtime, "clock" | "log" | "secrets"> & { resolver: Runtime["resolver"] },
  state: ServerInternals,
  bootParameters: BootParameterLoader,
  open: () => Promise<Adapters>,
): Promise<Adapters> {
  const { clock, log, secrets } = runtime;
  bootParameters.assertDue();
  const adapters = await open();
  try {
    const askedMs = clock.now();
    const { overrides, keyRing } = await bootParameters.load(adapters.parameters);
    runtime.resolver = createConfigResolver({ appOverrides: overrides });
    state.resolver = runtime.resolver;
    const problems = proofProblems(state.options, keyRing !== undefined);
    if (problems.length > 0) throw new BootError(problems);
    secrets.begin(keyRing, askedMs);
    const keys = [...state.registry.configKeys.values()]
      .filter(({ definition }) => definition.encrypted)
      .map(({ id }) => id);
    if (keyRing === undefined && keys.length > 0) log.warn("config.no_key_ring", { keys });
  } catch (error) {
    await adapters.close();
    throw error;
  }
  return adapters;
}
