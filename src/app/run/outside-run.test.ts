import { describe, expect, test } from "vitest";
import { type LoneRuntime, loneRuntime } from "../../../test/fixtures/lone-runtime.ts";
import { ConflictError } from "../../base/errors/errors.ts";
import { claimKey } from "../../parts/once/claim.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RunOptions } from "../registry/options.ts";
import { buildServer } from "../server/server.ts";
import { checkRunOptions, runOutside } from "./outside-run.ts";

const start = () => loneRuntime(buildServer({ features: [], environment: "test" }));
const reason = "a test";
const ann = { reason, tenantId: "acme", userId: "ann" };
const { signal } = new AbortController();
const runOf = <Result>(
  { runtime }: LoneRuntime,
  options: RunOptions,
  work: (ctx: PipelineContext) => Result | Promise<Result>,
) => runOutside(runtime, { options, signal, work });
const endsOf = ({ ends }: LoneRuntime) => ends.map(({ end }) => end);

describe("a run without a request ID", () => {
  test("returns the very result of its work, each time anew and without a claim", async () => {
    const lone = start();
    const results = [new Map(), () => 1];
    for (const result of results) expect(await runOf(lone, ann, () => result)).toBe(result);
    expect(lone.calls).toEqual([]);
    expect(endsOf(lone)).toEqual(results.map(() => ({ kind: "run", outcome: "processed" })));
  });

  test("returns the very result that it has committed, and not what follows", async () => {
    const committed = new Map();
    const work = async (ctx: PipelineContext) => {
      await ctx.commit([], committed);
      throw new Error("too late");
    };
    expect(await runOf(start(), ann, work)).toBe(committed);
  });

  test("has its user with each role once, an ID of its own and the signal", async () => {
    const lone = start();
    const own = { id: "ann", tenantId: "acme", roles: ["a", "b"], kind: "user" };
    const options = { ...ann, roles: ["a", "b", "a"] };
    const ctx = await runOf(lone, options, (given) => given);
    expect([ctx?.user, ctx?.signal]).toEqual([own, signal]);
    expect(await runOf(lone, ann, ({ requestId }) => requestId)).not.toBe(ctx?.requestId);
    expect(() => ctx?.acrossTenants("a test")).toThrow("ctx.acrossTenants takes systemAdmin");
  });

  test("is the system's if it has no tenant", async () => {
    const crosses = (ctx: PipelineContext) => typeof ctx.acrossTenants("a test");
    expect(await runOf(start(), { reason }, crosses)).toBe("object");
  });

  test("has no roles, unless it is given some", async () => {
    expect(await runOf(start(), ann, ({ user }) => user.roles)).toEqual([]);
  });

  test("needs no observer, whether it succeeds or fails", async () => {
    const lone = start();
    const unobserved = { ...lone, runtime: { ...lone.runtime, observer: undefined } };
    expect(await runOf(unobserved, ann, () => 1)).toBe(1);
    const error = new Error("broken");
    await expect(runOf(unobserved, ann, () => Promise.reject(error))).rejects.toBe(error);
    expect(endsOf(lone)).toEqual([]);
  });

  test.each<[string, Error, string]>([
    ["error", new Error("broken"), "of this program"],
    ["warn", new ConflictError("taken"), "of its caller"],
  ])(
    "logs why it ran, and at level %s that it failed, and throws its error",
    async (level, error) => {
      const lone = start();
      await expect(runOf(lone, ann, () => Promise.reject(error))).rejects.toBe(error);
      const line = { reason, handler: "keelson.server.run", tenantId: "acme", userId: "ann" };
      expect(lone.linesOf("run.started")).toEqual([expect.objectContaining(line)]);
      const failed = { ...line, level, message: error.message };
      expect(lone.linesOf("run.failed")).toEqual([expect.objectContaining(failed)]);
      expect(endsOf(lone)).toEqual([{ kind: "run", outcome: "failed", error }]);
    },
  );
});

describe("a run with a request ID", () => {
  test("is done once, and returns the JSON round trip of its result each time", async () => {
    const lone = start();
    let runs = 0;
    const work = ({ requestId }: PipelineContext) => ({ at: new Date(0), requestId, n: ++runs });
    const options = { ...ann, requestId: "r-1" };
    const result = { at: "1970-01-01T00:00:00.000Z", requestId: "r-1", n: 1 };
    expect([await runOf(lone, options, work), await runOf(lone, options, work)]).toEqual([
      result,
      result,
    ]);
  });

  test("is another for another ID, tenant or user, and for the system", async () => {
    const lone = start();
    let runs = 0;
    const others: RunOptions[] = [
      { ...ann, requestId: "r-1" },
      { ...ann, requestId: "r-2" },
      { ...ann, requestId: "r-1", tenantId: "evil" },
      { ...ann, requestId: "r-1", userId: "bob" },
      { reason, tenantId: "acme", requestId: "r-1" },
      { reason, tenantId: "-", requestId: "r-1" },
      { reason, requestId: "r-1" },
    ];
    for (const options of others) await runOf(lone, options, () => ++runs);
    expect([runs, lone.world.records.size]).toEqual([7, 7]);
  });

  // Other versions of the server find the claims of this one during a rolling deployment.
  test.each<[string, RunOptions, readonly string[]]>([
    ["a user", ann, ["run", "=acme", "=ann"]],
    ["a tenant", { reason, tenantId: "acme" }, ["run", "=acme", "-"]],
    ["the system", { reason }, ["run", "-", "-"]],
  ])("of %s has a claim with the key that it always had, and logs it", async (...given) => {
    const [, options, namespace] = given;
    const lone = start();
    await runOf(lone, { ...options, requestId: "r-1" }, () => 1);
    expect(lone.record(claimKey(namespace, "r-1"))).toMatchObject({ status: "COMPLETED" });
    expect(lone.linesOf("once.taken")).toHaveLength(1);
  });

  test("fails for a result that JSON does not have, and can then be done", async () => {
    const lone = start();
    const options = { ...ann, requestId: "r-1" };
    const wrong = runOf<unknown>(lone, options, () => () => 1);
    await expect(wrong).rejects.toThrow(
      "server.run: the result is a function, which JSON does not have; return plain data, or nothing",
    );
    expect(await runOf(lone, options, () => undefined)).toBeUndefined();
  });
});

describe("the options of a run", () => {
  test.each<[string, RunOptions]>([
    ["the longest reason", { reason: "x".repeat(500) }],
    ["all of them", { ...ann, roles: ["a"], requestId: "r".repeat(128) }],
  ])("may be %s", (_, options) => expect(() => checkRunOptions(options)).not.toThrow());

  test.each<[problem: string, options: unknown]>([
    ["the first argument is not an object", null],
    ["the first argument is not an object", "a test"],
    [
      'unknown option "tenant"; known are reason, tenantId, userId, roles, requestId',
      { reason, tenant: "acme" },
    ],
    ["the reason is", { reason: "x".repeat(501) }],
    ['the reason is " "', { reason: " " }],
    ["the reason is 7", { reason: 7 }],
    ['tenantId is ""', { reason, tenantId: "" }],
    ['userId is ""', { ...ann, userId: "" }],
    ["a user belongs to a tenant", { reason, userId: "ann" }],
    ["roles is not a list", { reason, roles: "admin" }],
    ["roles is not a list", { reason, roles: [7] }],
    ["requestId is 7", { reason, requestId: 7 }],
    ["requestId is", { reason, requestId: "r".repeat(129) }],
  ])("are refused: %s", (problem, options) => {
    const check = () => checkRunOptions(options as RunOptions); // safe: only plain JavaScript passes these
    expect(check).toThrow(TypeError);
    expect(check).toThrow(`server.run: ${problem}`);
  });
});
