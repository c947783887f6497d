import { expect, test } from "vitest";
import type { BootError } from "../../base/errors/boot.ts";
import { buildServer } from "../server/server.ts";
import { defineFeature, type Feature } from "./feature.ts";

const orders = defineFeature(
  "orders",
  (r) => void r.table("orders", { partitionKey: "pk", tenant: false }),
);
const billing = (options: unknown) => defineFeature("billing", () => undefined, options as never);

function problemsOf(...features: readonly Feature[]): string[] {
  try {
    buildServer({ features });
  } catch (error) {
    // Safe: buildServer throws nothing else.
    return (error as BootError).problems.map(
      ({ feature, key, rule, message, fix }) => `${feature}.${key}: ${rule}: ${message}; ${fix}`,
    );
  }
  return [];
}

test("a feature declares the tables it reaches, and the registry lists them", () => {
  const feature = defineFeature("billing", () => undefined, { uses: { orders: "read" } });
  const { registry } = buildServer({ features: [feature, orders] });
  expect(registry.features.map(({ uses }) => [...uses])).toEqual([[["orders", "read"]], []]);
});

test.each<[unknown, string]>([
  [
    7,
    "billing.defineFeature: option-type: the options are not an object; pass { uses, rateLimit }",
  ],
  [
    [],
    "billing.defineFeature: option-type: the options are not an object; pass { uses, rateLimit }",
  ],
  [
    { use: {} },
    'billing.defineFeature: unknown-option: unknown option "use"; did you mean `uses`? known are uses',
  ],
  [{ about: {} }, 'unknown option "about"; known are uses'],
  [
    { uses: ["orders"] },
    'billing.uses: uses: `uses` is ["orders"]; pass an object by the names of features',
  ],
  [{ uses: null }, "billing.uses: uses: `uses` is null"],
  [
    { uses: { orders: "delete" } },
    'billing.uses: uses-value: it uses "orders" as "delete"; use "read" or "write"',
  ],
  [
    { uses: { order: "read" } },
    'billing.uses: uses-unknown: it uses "order", which is not a feature of this server; did you mean orders?',
  ],
  [
    { uses: { customers: "read" } },
    'billing.uses: uses-unknown: it uses "customers", which is not a feature of this server; the server has billing, orders',
  ],
  [
    { uses: { billing: "read" } },
    "billing.uses: uses-itself: it uses itself; leave it out: its own tables are its own",
  ],
])("a feature with the options %j is refused", (options, problem) => {
  expect(problemsOf(billing(options), orders)).toEqual([expect.stringContaining(problem)]);
});

test("an invalid use does not compile", () => {
  // @ts-expect-error tables are read or written
  defineFeature("billing", () => undefined, { uses: { orders: "scan" } });
  // @ts-expect-error there is no such option
  defineFeature("billing", () => undefined, { use: {} });
});
