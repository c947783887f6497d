import { setTimeout as sleep } from "node:timers/promises";
import type { SoakClock } from "./clock.ts";
import type { FaultyGateway } from "./faulty-gateway.ts";
import type { Fleet } from "./fleet.ts";
import type { Random } from "./random.ts";

/** Signals and steps of the clock during a load, for its report. */
export interface Disturbed {
  readonly signals: Record<string, number>;
  readonly stepsMs: number[];
}

export interface DisturbedParts {
  readonly random: Random;
  readonly fleet: Fleet;
  readonly gateway: FaultyGateway;
  readonly clock: SoakClock;
}

/** Faults of the store outside and inside of an outburst. */
const [usually, inOutburst] = [0.01, 0.3];
const [outburstEveryMs, outburstMs] = [12_000, 2_000];
const signalEveryMs = 9_000;
const stepEveryMs = 13_000;

/** Disturbs the load until `end` aborts. Resolves once each process that was ended has a successor. */
export async function disturb(
  { random, fleet, gateway, clock }: DisturbedParts,
  end: AbortSignal,
): Promise<Disturbed> {
  const disturbed: Disturbed = { signals: {}, stepsMs: [] };
  const every = async (ms: number, work: () => Promise<void> | void) => {
    for (;;) {
      await pauseOf(ms * (0.5 + random.fraction()), end);
      if (end.aborted) return;
      await work();
    }
  };
  gateway.probability = usually;
  await Promise.all([
    every(outburstEveryMs, async () => {
      gateway.probability = inOutburst;
      await pauseOf(outburstMs, end);
      gateway.probability = usually;
    }),
    every(signalEveryMs, async () => {
      const signal = random.of(["SIGTERM", "SIGKILL"] as const);
      const kind = random.of(["container", "function"] as const);
      const name = `${signal} to a ${kind}`;
      disturbed.signals[name] = (disturbed.signals[name] ?? 0) + 1;
      if (kind === "container") await fleet.container.replace(signal);
      else fleet.function.signal(signal);
    }),
    every(stepEveryMs, () => void disturbed.stepsMs.push(clock.step(random))),
  ]);
  gateway.probability = 0;
  return disturbed;
}

async function pauseOf(ms: number, end: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: end }).catch(() => undefined);
}
