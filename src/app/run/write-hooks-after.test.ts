import { afterEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type LoneRuntime, loneRuntime } from "../../../test/fixtures/lone-runtime.ts";
import type { HookDeclaration } from "../handlers/hooks.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { RequestScope } from "../runtime/scope.ts";
import { buildServer } from "../server/server.ts";
import { createWriteHooks, type WriteHooks } from "./write-hooks.ts";

const ctx = {} as PipelineContext; // safe: the hooks of this file use nothing of it
const write = { name: "hooked.note.create", input: undefined };
const hookOf = (feature: string, does: Partial<HookDeclaration>): HookDeclaration => ({
  ...{ feature, write: write.name, before: undefined, commit: undefined, after: undefined },
  ...does,
});

const start = () => loneRuntime(buildServer({ features: [], environment: "test" }));

/** The hooks of a run, which has a deadline where `leftMs` is left. */
function hooksOf(
  { runtime, world }: LoneRuntime,
  hooks: readonly HookDeclaration[],
  leftMs?: number,
): WriteHooks {
  const deadlineMs = leftMs === undefined ? undefined : world.nowMs + leftMs;
  const scope = new RequestScope(runtime, "r-1", { deadlineMs });
  return createWriteHooks(scope, write, hooks, () => ({}));
}

/** Has timers end at once, and returns the waits that they were asked for. */
function waitsAtOnce(): unknown[] {
  const { setTimeout: original } = globalThis;
  const waits: unknown[] = [];
  vi.spyOn(globalThis, "setTimeout").mockImplementation((work, ms, ...given) => {
    waits.push(ms);
    return original(work, 0, ...given);
  });
  return waits;
}

afterEach(() => vi.restoreAllMocks());

describe("the wait for hooks after a write", () => {
  const never = hookOf("slow", { after: () => Promise.withResolvers<void>().promise });

  test.each<[string, number | undefined, number]>([
    ["two seconds without a deadline", undefined, 2_000],
    ["two seconds before a late one", 60_000, 2_000],
    ["what is left before the answer has to be sent", 1_000, 800],
    ["no time if only the sending is left", 200, 0],
    ["no time if nothing is left", -5_000, 0],
  ])("is %s", async (_, leftMs, waitMs) => {
    const lone = start();
    const waits = waitsAtOnce();
    const hooks = hooksOf(lone, [hookOf("first", { before: () => undefined }), never], leftMs);
    await hooks.before(ctx, {});
    await hooks.after();
    expect(waits).toContain(waitMs);
    // Names those with an `after` alone.
    const line = { level: "warn", hooks: ["slow"] };
    expect(lone.linesOf("hook.after_late")).toEqual([expect.objectContaining(line)]);
  });

  test("ends with them, in their order, with no line and no timer left", async () => {
    const lone = start();
    const cleared = vi.spyOn(globalThis, "clearTimeout");
    const asked = vi.spyOn(globalThis, "setTimeout");
    const seen: string[] = [];
    const noting = (feature: string) =>
      hookOf(feature, {
        after: async () => {
          await Promise.resolve();
          seen.push(feature);
        },
      });
    const hooks = hooksOf(lone, [noting("one"), noting("two")]);
    await hooks.before(ctx, {});
    await hooks.after();
    expect([seen, lone.linesOf("hook.after_late")]).toEqual([["one", "two"], []]);
    const nth = asked.mock.calls.findIndex(([, ms]) => ms === 2_000);
    expect(cleared).toHaveBeenCalledWith(asked.mock.results[nth]?.value);
  });

  test("is none if no hook has an after", async () => {
    const waits = waitsAtOnce();
    const hooks = hooksOf(start(), [hookOf("first", { before: () => undefined })]);
    await hooks.before(ctx, {});
    await hooks.after();
    expect(waits).not.toContain(2_000);
  });

  test("goes on after one that failed, with a line that names it", async () => {
    const lone = start();
    const seen: unknown[] = [];
    const hooks = hooksOf(lone, [
      hookOf("broken", { after: () => Promise.reject(new Error("no")) }),
      hookOf("next", { after: (...given) => void seen.push(...given) }),
    ]);
    const input = { n: 1 };
    await hooks.before(ctx, input);
    await hooks.itemsOf({ done: true });
    await hooks.after();
    expect(seen).toEqual([ctx, input, { done: true }]);
    const line = { level: "error", hook: "broken", message: "no" };
    expect(lone.linesOf("hook.after_failed")).toEqual([expect.objectContaining(line)]);
  });
});

describe("the input that a hook returns", () => {
  const given = { at: new Date(0), list: [1] };

  test("is what the handler gets if the write has no schema, even an equal one", async () => {
    const copy = structuredClone(given);
    const hooks = hooksOf(start(), [hookOf("first", { before: () => copy })]);
    expect(await hooks.before(ctx, given)).toBe(copy);
  });

  test("is that which was given if it returns none", async () => {
    const hooks = hooksOf(start(), [hookOf("first", { before: () => undefined })]);
    expect(await hooks.before(ctx, given)).toBe(given);
  });

  test("leaves out the defaults of the schema, which makes them again", async () => {
    const seen: unknown[] = [];
    const note = z.object({ text: z.string(), size: z.number().default(7) });
    const input = z.preprocess((raw) => {
      seen.push(Object.entries(raw as object)); // safe: it is an object below
      return raw;
    }, note);
    const scope = new RequestScope(start().runtime, "r-1", {});
    const before: HookDeclaration["before"] = (_ctx, accepted) => ({
      ...{ ...(accepted as object), text: "b" }, // safe: it fits the schema
    });
    const hooks = createWriteHooks(scope, { ...write, input }, [hookOf("one", { before })], () => ({
      text: "a",
    }));
    expect(await hooks.before(ctx, { text: "a", size: 7 })).toEqual({ text: "b", size: 7 });
    expect(seen).toEqual([[["text", "b"]]]);
  });
});

test("items of a hook that are no list are refused, with its write and feature", async () => {
  const hooks = hooksOf(start(), [hookOf("first", { commit: () => undefined })]);
  await hooks.before(ctx, {});
  await expect(hooks.itemsOf({})).rejects.toThrow(
    "hooked.note.create: commit of the hook of first returned no list of items",
  );
});
