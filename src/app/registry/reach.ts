import { deliveryJob } from "../../parts/messages/delivery.ts";
import { runningKinds } from "../features/feature.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { Registry } from "./registry.ts";

/** Table access: `query` reads, `check` also checks conditions in commits, `write` writes. */
export type Reach = "query" | "check" | "write";

export interface Runner {
  readonly feature: string;
  readonly isQuery: boolean;
}

const reaches: readonly Reach[] = ["query", "check", "write"];

export function covers(reach: Reach | undefined, needed: Reach): boolean {
  return reach !== undefined && reaches.indexOf(reach) >= reaches.indexOf(needed);
}

export function handlerRunners(
  { hooks }: Registry,
  { name, feature, kind }: HandlerDeclaration,
): Runner[] {
  return [{ feature, isQuery: kind === "query" }, ...(hooks.get(name) ?? []).map(writing)];
}

/** Returns the features whose code runs under a full name; `undefined` for an unknown name. */
export function runnersOf(registry: Registry, name: string): Runner[] | undefined {
  const handler = registry.handlers.get(name);
  if (handler !== undefined) return handlerRunners(registry, handler);
  // The name of a delivery's job does not identify its channel.
  if (name === deliveryJob) return [...registry.channels.values()].map(writing);
  const declared = runningKinds
    .map((kind) => registry[kind].get(name))
    .find((one) => one !== undefined);
  return declared && [writing(declared)];
}

function writing({ feature }: Pick<Runner, "feature">): Runner {
  return { feature, isQuery: false };
}

/** Returns the runners' access to the tables of each feature: their own and those they use. */
export function reachOf(
  registry: Registry,
  runners: readonly Runner[],
): ReadonlyMap<string, Reach> {
  const most = new Map<string, Reach>();
  const add = (feature: string, reach: Reach) => {
    if (!covers(most.get(feature), reach)) most.set(feature, reach);
  };
  for (const { name, uses } of registry.features) {
    for (const { isQuery } of runners.filter(({ feature }) => feature === name)) {
      add(name, isQuery ? "query" : "write");
      for (const [used, use] of uses)
        add(used, isQuery ? "query" : use === "read" ? "check" : "write");
    }
  }
  return most;
}
