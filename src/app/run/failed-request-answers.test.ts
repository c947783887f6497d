// The response to a failed request, and its log lines.
import { beforeAll, expect, test } from "vitest";
import { hostless } from "../../../test/fixtures/hostless.ts";
import { answersOtherwise } from "../../../test/support/held/hold.ts";
import { ConflictError, FrameworkError, PipelineError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";
import { signToken } from "../../base/identity/token.ts";
import { systemClock } from "../../base/process/clock.ts";
import { reply } from "../../parts/http/reply.ts";
import { defineFeature } from "../features/feature.ts";
import { runInScope } from "../runtime/scope.ts";
import { buildServer } from "../server/server.ts";
import { recognize } from "./failed-request.ts";

const secret = "s".repeat(32);
let failure: unknown;
const fails = async (): Promise<never> => {
  throw failure;
};
const everyone = { access: access.everyone };
const shop = defineFeature("shop", (r) => {
  r.query("item.show", { route: "GET /items", ...everyone, handler: fails });
  r.query("item.miss", {
    route: "GET /missing",
    ...everyone,
    handler: async () => reply({}, { status: 400 }),
  });
});
const server = buildServer({ features: [shop], auth: { secret } });
const app = hostless(server);

let token: string;
beforeAll(async () => {
  const signed = { secret, userId: "ann", tenantId: "acme", roles: [] };
  token = `Bearer ${await signToken(signed, systemClock)}`;
});
const bob: GatewayClaims = { by: "jwt", claims: { sub: "bob", tenantId: "globex" } };

test("the line of a rejected request names its caller, by token or gateway claims", async () => {
  const named = async (headers: Record<string, string>, gatewayClaims?: GatewayClaims) => {
    const { status, lines } = await app.ask("GET /nowhere", { headers, gatewayClaims });
    return [status, lines.map(({ msg, userId, tenantId }) => [msg, userId, tenantId])];
  };
  const line = (...who: unknown[]) => [404, [["request.failed", ...who]]];

  expect(await named({ authorization: token })).toEqual(line("ann", "acme"));
  expect(await named({}, bob)).toEqual(line("bob", "globex"));
  expect(await named({ authorization: token }, bob)).toEqual(line("bob", "globex"));
  expect(await named({})).toEqual(line(undefined, undefined));
  expect(await named({ authorization: "Bearer a.b.c" })).toEqual(line(undefined, undefined));
});

test("does not look for a caller without credentials", async () => {
  const recognized = await runInScope(app.runtime, { headers: {} }, async (scope) => [
    recognize(scope, { headers: {}, gatewayClaims: undefined }),
  ]);
  expect(recognized).toEqual([undefined]);
});

test("answers with the code, the message and the ID of the request", async () => {
  failure = new ConflictError("timeout", "too late");
  const { status, headers, json, lines } = await app.ask("GET /items", {
    headers: { "x-request-id": "r1" },
  });

  expect(status).toBe(409);
  expect(json()).toEqual({ error: "timeout", message: "too late", requestId: "r1" });
  expect(headers).toMatchObject({
    "content-type": "application/json; charset=utf-8",
    "x-request-id": "r1",
  });
  expect(lines[0]).toMatchObject({
    level: "warn",
    msg: "request.failed",
    requestId: "r1",
    handler: "shop.item.show",
    error: "timeout",
    status: 409,
    message: "too late",
  });
});

test("answers with problem+json if the client accepts it", async () => {
  const { headers, json } = await app.ask("GET /nowhere", {
    headers: { accept: "application/problem+json" },
  });

  expect(headers["content-type"]).toBe("application/problem+json");
  expect(json()).toMatchObject({
    title: "Not found",
    status: 404,
    detail: "route /nowhere not found",
  });
});

test("answers HEAD without the error's body, and with its length", async () => {
  const [get, head] = [await app.ask("GET /nowhere"), await app.ask("HEAD /nowhere")];

  expect(head.status).toBe(404);
  expect(head.body).toBeUndefined();
  expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
  expect(get.body).toHaveLength(Number(get.headers["content-length"]));
});

test("sends a stack only in development, and logs it everywhere", async () => {
  failure = new Error("a secret reason");
  const sent = async (environment: "development" | "production") => {
    const { json, lines } = await hostless(server, { environment }).ask("GET /items");
    const stack = expect.stringContaining("a secret reason");
    expect(lines).toMatchObject([{ level: "error", msg: "request.failed", stack }]);
    return json();
  };

  expect(await sent("production")).toEqual({
    error: "internal_error",
    message: "Internal server error",
    requestId: expect.any(String),
  });
  expect(await sent("development")).toMatchObject({
    stack: expect.stringContaining("a secret reason"),
  });
});

/** The answer to a request whose signal aborts with a reason before its handler throws. */
async function aborted(reason: unknown, thrown: unknown, isAborted = true) {
  const controller = new AbortController();
  if (isAborted) controller.abort(reason);
  failure = thrown;
  const { status, lines } = await app.ask("GET /items", { signal: controller.signal });
  return [status, lines.map(({ level, msg, error }) => [level, msg, error])];
}

const abortError = () => Object.assign(new Error("stopped"), { name: "AbortError" });
const disconnected = new Error("the client disconnected");
const late = new FrameworkError("timeout", "The deadline has passed");

test("logs no failure of a handler that stops because the client disconnected", async () => {
  const stopped = [500, [["warn", "request.aborted", undefined]]];

  expect(await aborted(disconnected, disconnected)).toEqual(stopped);
  expect(await aborted(disconnected, abortError())).toEqual(stopped);
  expect(await aborted("text", "text")).toEqual(stopped);
});

test("logs the failure of a handler that fails for another reason meanwhile", async () => {
  const failed = [500, [["error", "request.failed", "internal_error"]]];

  expect(await aborted(disconnected, new Error("broken"))).toEqual(failed);
  expect(await aborted(disconnected, { name: "AbortError" })).toEqual(failed);
  expect(await aborted(disconnected, undefined)).toEqual(failed);
  expect(await aborted(late, new Error("broken"))).toEqual(failed);
  expect(await aborted(disconnected, abortError(), false)).toEqual(failed);
  failure = abortError();
  expect((await app.ask("GET /items")).lines).toMatchObject([{ msg: "request.failed" }]);
});

test("after a timeout, answers with its typed reason, not with an AbortError", async () => {
  const timedOut = [504, [["error", "request.failed", "timeout"]]];

  expect(await aborted(late, abortError())).toEqual(timedOut);
  expect(await aborted(late, late)).toEqual(timedOut);
});

test("does not warn about a pipeline_error of any status, declared or not", async () => {
  failure = new PipelineError("The archive is being rebuilt", 503);
  const { status, lines } = await app.ask("GET /items");
  expect([status, lines.map(({ msg }) => msg)]).toEqual([503, ["request.failed"]]);
});

test("does not warn about an error that a handler sends as a reply", async () => {
  answersOtherwise("it replies with an error body without a code");
  const { status, lines } = await app.ask("GET /missing");
  expect([status, lines]).toEqual([400, []]);
});
