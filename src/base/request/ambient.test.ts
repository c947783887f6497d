import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createSecrets } from "../secrets/secrets.ts";
import { type AmbientStore, ambientStore, currentContext, runWithStore } from "./ambient.ts";
import { createRandomDigits, RunTrace } from "./trace.ts";

const storeOf = (requestId: string): AmbientStore => ({
  context: {
    requestId,
    tenantId: undefined,
    userId: undefined,
    signal: undefined,
    trace: new RunTrace(createRandomDigits()),
  },
  runtime: {
    tableName: (name) => name,
    secrets: createSecrets({ clock: { now: () => 0 } }),
    projections: { open: async () => ({ version: async () => 1 }) },
  },
});
const requestId = () => currentContext()?.requestId;

test("asynchronous work of a run sees its store, and code after the run the previous one", async () => {
  const outer = storeOf("outer");
  const found = runWithStore(outer, async () => {
    const inner = runWithStore(storeOf("inner"), async () => {
      await setImmediate();
      return requestId();
    });
    expect(ambientStore()).toBe(outer);
    return [await inner, requestId()];
  });
  expect(ambientStore()).toBeUndefined();
  expect(await found).toEqual(["inner", "outer"]);
  expect(ambientStore()).toBeUndefined();
});

test("a run that throws synchronously leaves nothing behind", () => {
  const fail = () => {
    throw new Error("at once");
  };
  expect(() => runWithStore(storeOf("failing"), fail)).toThrow("at once");
  expect(ambientStore()).toBeUndefined();
});

test("an application's own stores stay unchanged, within a run and after it", async () => {
  const own = new AsyncLocalStorage<string>();
  await own.run("mine", async () => {
    expect(await runWithStore(storeOf("a"), async () => own.getStore())).toBe("mine");
    own.enterWith("changed");
    expect(await runWithStore(storeOf("b"), async () => [own.getStore(), requestId()])).toEqual([
      "changed",
      "b",
    ]);
    expect(own.getStore()).toBe("changed");
  });
});
