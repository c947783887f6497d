import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type LoneRuntime, loneRuntime } from "../../../test/fixtures/lone-runtime.ts";
import { anonymous, type User } from "../../base/identity/access.ts";
import type { HttpResponse } from "../../parts/http/message.ts";
import { reply } from "../../parts/http/reply.ts";
import type { WriteAnswer } from "../../parts/once/answer.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { RequestScope } from "../runtime/scope.ts";
import { buildServer } from "../server/server.ts";
import { responseOf, runWrite } from "./write.ts";

type Does = (ctx: PipelineContext) => unknown;

/** A server whose writes do what the test says. */
function start(does: Does): LoneRuntime {
  const note = z.object({ text: z.string().transform((text) => text.trim()) });
  const answered = defineFeature("answered", (r) => {
    r.write("note.create", { handler: (ctx) => does(ctx) });
    // Safe: a test has it answer something else on purpose.
    r.write("note.checked", { output: note, handler: (ctx) => does(ctx) as { text: string } });
  });
  return loneRuntime(buildServer({ features: [answered], environment: "test" }));
}

interface Asked {
  readonly name?: "note.create" | "note.checked";
  readonly headers?: Readonly<Record<string, string>>;
  readonly head?: boolean;
  readonly user?: User;
}

/** Runs a write of a caller with a key. */
function post(
  { runtime, adapters }: Pick<LoneRuntime, "runtime" | "adapters">,
  { name = "note.create", headers = {}, head = false, user = anonymous }: Asked = {},
): Promise<HttpResponse> {
  const declaration = runtime.server.registry.handlers.get(`answered.${name}`);
  if (declaration === undefined) throw new Error("the feature declares it");
  const scope = new RequestScope(runtime, "r-1", {});
  scope.user = user;
  const request = { headers: { "idempotency-key": "k-1", ...headers } };
  const input = {};
  return runWrite(scope, adapters, { declaration, request, input, rawInput: () => input, head });
}

const json = "application/json; charset=utf-8";
const never = { ConditionCheck: "never" } as never; // safe: the store of claims refuses it

describe("the answer of a write", () => {
  test.each<[string, Does]>([
    ["returns", () => ({ text: " a " })],
    ["commits", (ctx) => ctx.commit([], { text: " a " })],
  ])("that %s is what its output schema makes, if it has one", async (_, does) => {
    const checked = await post(start(does), { name: "note.checked" });
    expect(checked).toMatchObject({ status: 200, body: '{"text":"a"}' });
    expect(await post(start(does))).toMatchObject({ status: 200, body: '{"text":" a "}' });
  });

  test("that does not fit its output schema is an error, and a repeat tries again", async () => {
    let runs = 0;
    const lone = start(() => ({ text: ++runs }));
    const asked = { name: "note.checked" } as const;
    for (const _ of [1, 2])
      await expect(post(lone, asked)).rejects.toMatchObject({ code: "response_mismatch" });
    expect(runs).toBe(2);
  });

  test.each(["note.create", "note.checked"] as const)(
    "may be a Response, which a repeat gets without its cookies and its own headers: %s",
    async (name) => {
      const headers = { "x-own": "1" };
      const lone = start(() => Response.json({ text: "ä" }, { status: 201, headers }));
      const sent = { status: 201, body: '{"text":"ä"}', cookies: [] };
      const first = await post(lone, { name });
      expect(first).toMatchObject({ ...sent, headers: { "x-own": "1" } });
      expect(first.headers).not.toHaveProperty("idempotent-replayed");
      const repeat = await post(lone, { name });
      expect(repeat).toMatchObject({
        ...sent,
        headers: { "content-length": "13", "idempotent-replayed": "true" },
      });
      expect(repeat.headers).not.toHaveProperty("x-own");
    },
  );

  test.each(["note.create", "note.checked"] as const)(
    "may be a Response whose commit has failed before: %s",
    async (name) => {
      const lone = start(async (ctx) => {
        const response = Response.json({ text: "a" });
        await expect(ctx.commit([never], response)).rejects.toThrow("condition_failed");
        return response;
      });
      expect(await post(lone, { name })).toMatchObject({ status: 200, body: '{"text":"a"}' });
    },
  );

  test("that is empty is a 204 without a length, also for a repeat", async () => {
    const lone = start(() => undefined);
    const empty = { status: 204, body: undefined, cookies: [] };
    expect(await post(lone)).toEqual({ ...empty, headers: {} });
    expect(await post(lone)).toEqual({ ...empty, headers: { "idempotent-replayed": "true" } });
  });

  test("has no body for HEAD", async () => {
    const lone = start(() => ({ text: "a" }));
    const headers = { "content-type": json, "content-length": "12" };
    expect(await post(lone, { head: true })).toMatchObject({ body: undefined, headers });
  });

  test("sets cookies that browsers send over HTTPS alone, except in development", async () => {
    const lone = start(() => reply(undefined, { cookies: { seen: { value: "1" } } }));
    const development = { ...lone.runtime, environment: "development" } as const;
    expect((await post(lone)).cookies).toEqual(["seen=1; Path=/; HttpOnly; Secure; SameSite=Lax"]);
    const local = await post({ ...lone, runtime: development });
    expect(local.cookies).toEqual(["seen=1; Path=/; HttpOnly; SameSite=Lax"]);
  });
});

describe("the result of a write that cannot be sent", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;

  test("is an error with one line, which a repeat gets without a second write", async () => {
    let runs = 0;
    const lone = start(() => {
      runs += 1;
      return { n: 1n };
    });
    const answer = await post(lone);
    const body: unknown = JSON.parse(String(answer.body));
    expect(answer).toMatchObject({ status: 500, headers: { "content-type": json } });
    expect(body).toMatchObject({ error: "internal_error", requestId: "r-1" });
    const line = { level: "error", message: expect.stringContaining("cannot be written as JSON") };
    expect(lone.linesOf("request.failed")).toEqual([expect.objectContaining(line)]);
    const repeat = await post(lone);
    expect(repeat).toMatchObject({ status: 500, body: answer.body });
    expect(repeat.headers).toHaveProperty("idempotent-replayed", "true");
    expect([runs, lone.linesOf("request.failed").length]).toEqual([1, 1]);
  });

  test("is described as the request accepts it", async () => {
    const accept = "application/problem+json";
    const lone = start(() => circular);
    const answer = await post(lone, { headers: { accept } });
    expect(answer.headers).toHaveProperty("content-type", accept);
    const unnamed = await post(
      start(() => circular),
      { head: true },
    );
    expect(unnamed).toMatchObject({ status: 500, body: undefined });
  });

  test("shows its stack in development alone", async () => {
    const { runtime, adapters } = start(() => circular);
    for (const environment of ["development", "test"] as const) {
      const headers = { "idempotency-key": environment };
      const { body } = await post({ runtime: { ...runtime, environment }, adapters }, { headers });
      expect(String(body).includes('"stack"')).toBe(environment === "development");
    }
  });

  test("fails its commit, so that nothing is written", async () => {
    const lone = start((ctx) => ctx.commit([{ Put: { TableName: "t", Item: {} } }], circular));
    await expect(post(lone)).rejects.toThrow("cannot be written as JSON");
    expect([lone.world.transactions, lone.world.records.size]).toEqual([[], 0]);
  });
});

describe("the response of an outcome", () => {
  const answer: WriteAnswer = {
    status: 201,
    headers: { "content-type": "text/plain", etag: '"1"' },
    cookies: ["a=1"],
    body: "é",
  };
  const { headers } = answer;

  test.each([
    { kind: "done", result: undefined, answer, isNoted: true },
    { kind: "committed", answer },
  ] as const)("that is $kind is its answer, whose headers are its own", (outcome) => {
    const response = responseOf(outcome);
    expect(response).toEqual(answer);
    expect(response.headers).not.toBe(headers);
  });

  test("that is replayed says so and has its length in bytes, but no cookies", () => {
    const replayed = { ...headers, "idempotent-replayed": "true" };
    expect(responseOf({ kind: "replayed", answer })).toEqual({
      ...{ ...answer, cookies: [] },
      headers: { ...replayed, "content-length": "2" },
    });
    const empty = { ...answer, body: undefined };
    expect(responseOf({ kind: "replayed", answer: empty })).toEqual({
      ...{ ...empty, cookies: [] },
      headers: replayed,
    });
  });
});
