import type { SQSClient } from "@aws-sdk/client-sqs";
import type { SoakClock } from "./clock.ts";
import { type ContainerSlot, startContainerSlot } from "./container-slot.ts";
import { type FunctionSlot, startFunctionSlot } from "./function-slot.ts";
import type { Host } from "./host.ts";
import type { ProcessParts } from "./process-parts.ts";
import type { Random } from "./random.ts";

/** All processes of the server: one of each kind survives, the others are signalled. */
export interface Fleet {
  readonly survivors: Readonly<Record<string, Host>>;
  readonly container: ContainerSlot;
  readonly function: FunctionSlot;
  /** All that serve. */
  readonly all: readonly Host[];
  hostOf(random: Random): Host;
  stop(): Promise<void>;
}

export async function startFleet(
  parts: ProcessParts,
  more: {
    readonly runtime: string;
    readonly clock: SoakClock;
    readonly sqs: SQSClient;
    readonly queues: readonly string[];
  },
): Promise<Fleet> {
  const started: Pick<ContainerSlot, "stop">[] = [];
  const kept = async <Slot extends Pick<ContainerSlot, "stop">>(starting: Promise<Slot>) => {
    const slot = await starting.catch(async (error: unknown) => {
      await Promise.all(started.map((one) => one.stop()));
      throw error;
    });
    started.push(slot);
    return slot;
  };
  // One after the other: the first creates tables and queues.
  const stable = await kept(startContainerSlot(parts));
  const container = await kept(startContainerSlot(parts));
  const stableFunction = await kept(startFunctionSlot({ ...parts, ...more }));
  const otherFunction = await kept(startFunctionSlot({ ...parts, ...more }));
  return {
    survivors: { "the container": stable, "the function": stableFunction },
    container,
    function: otherFunction,
    all: [stable, container, stableFunction, otherFunction],
    hostOf: (random) => {
      const containers = container.isReady ? ([stable, container] as const) : ([stable] as const);
      return random.chance(0.6)
        ? random.of<Host>(containers)
        : random.of<Host>([stableFunction, otherFunction]);
    },
    stop: async () => {
      await Promise.all([stableFunction.stop(), otherFunction.stop()]);
      await Promise.all([stable.stop(), container.stop()]);
    },
  };
}
