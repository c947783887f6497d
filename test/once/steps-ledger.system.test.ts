import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { buildServer, defineFeature, type IfUnknown } from "keelson";
import { crashEverywhere } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";

/** What a ledger has of one account: how often it was charged, and the IDs of the charges by their keys. */
interface Account {
  readonly charges: number;
  readonly keys: number;
}

let ledger: ChildProcess;
let url: string;
let accounts = 0;
let account = "";

beforeAll(async () => {
  ledger = fork(new URL("ledger.mjs", import.meta.url), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const [port] = (await once(ledger, "message")) as [number]; // it sends nothing else
  url = `http://127.0.0.1:${port}`;
});
afterAll(() => void ledger.kill());

const accountOf = async () => (await (await fetch(`${url}/${account}`)).json()) as Account;

/** A server that charges at the ledger; with the key where the ledger deduplicates by it. */
function serverOf(ifUnknown: IfUnknown, hasKey: boolean) {
  const feature = defineFeature("shop", (r) => {
    r.write("order.pay", {
      once: { required: true, keepSeconds: 3_600 },
      handler: async (ctx) => {
        const charge = await ctx.step("charge", { ifUnknown }, async (key) => {
          const headers: Record<string, string> = hasKey ? { "idempotency-key": key } : {};
          const response = await fetch(`${url}/${account}`, { method: "POST", headers });
          return (await response.json()) as { readonly id: string };
        });
        return ctx.commit([], charge);
      },
    });
  });
  return buildServer({ features: [feature], once: { waitMs: 100 } });
}

const scenario = {
  arrange: async () => {
    account = `a${++accounts}`;
  },
  act: async (
    app: Parameters<NonNullable<Parameters<typeof crashEverywhere>[1]["arrange"]>>[0],
  ) => {
    const as = { id: "ann", tenantId: "acme" };
    return app
      .call("shop.order.pay", {}, { as, idempotencyKey: "k1" })
      .catch((error: { readonly code?: string }) => {
        // The client asks again, but not for ever: the fifth answer counts.
        if (error.code === "unknown_outcome") return "unknown";
        throw error;
      });
  },
};

test("a ledger with keys charges exactly once, wherever the process dies", async () => {
  let answers = 0;
  const cuts = await crashEverywhere(serverOf("retry", true), {
    ...scenario,
    check: async (_app, result) => {
      expect(await accountOf()).toMatchObject({ charges: 1, keys: 1 });
      expect(result).toEqual({ id: `${account}-1` });
      answers += 1;
    },
  });
  expect(answers).toBe(cuts.length + 1);
});

test("a ledger without keys charges at most once, and unknown charges are reported", async () => {
  const seen = new Set<string>();
  await crashEverywhere(serverOf("refuse", false), {
    ...scenario,
    check: async (app, result) => {
      const { charges } = await accountOf();
      expect(charges).toBeLessThanOrEqual(1);
      const isUnknown = result === "unknown";
      expect(app.logs.some(({ msg, level }) => msg === "step.unknown" && level === "error")).toBe(
        isUnknown,
      );
      if (!isUnknown) expect([charges, result]).toEqual([1, { id: `${account}-1` }]);
      seen.add(isUnknown ? `unknown, charged ${charges} times` : "charged");
    },
  });
  expect([...seen].sort()).toEqual([
    "charged",
    "unknown, charged 0 times",
    "unknown, charged 1 times",
  ]);
});
