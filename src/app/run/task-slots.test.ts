import { expect, test } from "vitest";
import { lazy } from "../../base/process/lazy.ts";
import { createTenantConfig, defineFeature } from "../../index.ts";
import { MustWaitError } from "../../parts/limits/must-wait.ts";
import type { SlotPlace } from "../../parts/limits/slot.ts";
import type { Slots } from "../../parts/limits/slots.ts";
import type { RunParts } from "../../parts/once/claimed-run.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { slotsOf } from "./task-slots.ts";

const { atOnce } = defineFeature("scans", (r) =>
  r.config({
    keys: { atOnce: createTenantConfig("number", { default: 3, bounds: { min: 1, max: 9 } }) },
  }),
);
const key = { partition: "p", sort: "s" };
// Safe casts: a run is asked only for its claim, and a ctx for its configuration.
const run = { held: () => ({ claim: { key, owner: "me" } }) } as unknown as RunParts;
const ctx = { config: async () => 3 } as unknown as PipelineContext;

function start({ full = [], held = [] }: { full?: string[]; held?: string[] } = {}) {
  const calls: unknown[][] = [];
  const slots: Slots = {
    list: async () => [],
    isFull: ({ limit }) => full.includes(limit),
    take: async ({ limit, tenantId }: SlotPlace, most, holder) => {
      calls.push(["take", limit, tenantId, most, holder.owner]);
      return !held.includes(limit);
    },
    leave: async ({ limit }, owner) => void calls.push(["leave", limit, owner]),
  };
  return { slots: lazy(async () => slots), calls };
}

test("takes a slot of the tenant, then one of all, and gives both back", async () => {
  const { slots, calls } = start();
  const taking = slotsOf({ slots }, "scans.file.scan", "acme", { perTenant: atOnce, total: 10 });
  await taking.refuseIfFull();
  await taking.enter(ctx, run);
  await taking.leave();
  expect(calls).toEqual([
    ["take", "perTenant", "acme", 3, "me"],
    ["take", "total", undefined, 10, "me"],
    ["leave", "perTenant", "me"],
    ["leave", "total", "me"],
  ]);
});

test("gives back only what it has taken", async () => {
  const { slots, calls } = start({ held: ["total"] });
  const taking = slotsOf({ slots }, "scans.file.scan", undefined, { perTenant: 2, total: 1 });
  await expect(taking.enter(ctx, run)).rejects.toThrow(new MustWaitError("total"));
  await taking.leave();
  expect(calls.at(-1)).toEqual(["leave", "perTenant", "me"]);
  expect(calls.filter(([call]) => call === "leave")).toHaveLength(1);
});

test("gives back a slot if it is unknown whether it was taken", async () => {
  const { slots, calls } = start();
  const opened = await slots.open();
  opened.take = () => Promise.reject(new Error("answer lost"));
  const taking = slotsOf({ slots }, "scans.file.scan", "acme", { total: 1 });
  await expect(taking.enter(ctx, run)).rejects.toThrow("answer lost");
  await taking.leave();
  expect(calls).toEqual([["leave", "total", "me"]]);
});

test("refuses without a call while the process knows that all slots are held", async () => {
  const { slots, calls } = start({ full: ["total"] });
  const taking = slotsOf({ slots }, "scans.file.scan", "acme", { total: 1 });
  await expect(taking.refuseIfFull()).rejects.toThrow(new MustWaitError("total"));
  await taking.leave();
  expect(calls).toEqual([]);
});

test.each([
  [2.7, 2],
  [0, 0],
  [5_000, 1_000],
])("a key with the value %d allows %d runs", async (value, most) => {
  const { slots, calls } = start();
  const taking = slotsOf({ slots }, "scans.file.scan", "acme", { perTenant: atOnce });
  await taking.enter({ config: async () => value } as unknown as PipelineContext, run);
  expect(calls).toEqual([["take", "perTenant", "acme", most, "me"]]);
});

test.each([undefined, Number.NaN, -1, "3"])(
  "a key with the value %j fails the attempt and takes no slot",
  async (value) => {
    const { slots, calls } = start();
    const taking = slotsOf({ slots }, "scans.file.scan", "acme", { total: atOnce });
    const given = { config: async () => value } as unknown as PipelineContext;
    const expected =
      /^scans\.file\.scan: concurrency\.total is .+; give the key a default, and bounds from 0$/;
    await expect(taking.enter(given, run)).rejects.toThrow(expected);
    await taking.leave();
    expect(calls).toEqual([]);
  },
);
