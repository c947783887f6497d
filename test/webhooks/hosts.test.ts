import { buildServer, defineFeature } from "keelson";
import { type HttpApiResult, lambdaHttp } from "keelson/lambda";
import { lambdaContext, lambdaEvent, startTestApp, type TestApp } from "keelson/testing";
import { signedHeaders, stripe } from "keelson/webhooks";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { hooks, secret, world } from "./fixture.ts";

let app: TestApp;
const options = { features: [hooks], limits: { inFlightPerTenant: 1 } };
beforeAll(async () => {
  app = await startTestApp(buildServer(options));
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
});
beforeEach(() => {
  world.runs.length = 0;
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await app.close();
});

const signed = (body: string) => signedHeaders(stripe({ secret }), body);

test("a function verifies the exact bytes, and is closed to other tenants if it is isolated", async () => {
  const handler = lambdaHttp(buildServer({ features: [hooks] }));
  const ask = async (body: string, tenantId?: string) => {
    const headers = { "content-type": "application/json", ...(await signed(body)) };
    const event = lambdaEvent("httpApi", { method: "POST", path: "/hooks/stripe", headers, body });
    const context = lambdaContext({ ...(tenantId !== undefined && { tenantId }) });
    const { statusCode }: HttpApiResult = await handler(event, context);
    return statusCode;
  };
  const event = (id: string) => `{ "id": "${id}", "account":"acme", "text": "é" }`;
  expect(await ask(event("l1"))).toBe(204);
  expect(await ask(event("l2"), "acme")).toBe(204);
  expect(await ask(event("l3"), "globex")).toBe(403);
  expect(world.runs.map(({ tenantId }) => tenantId)).toEqual(["acme", "acme"]);
});

test("a server without rate limits receives webhooks", async () => {
  const bare = defineFeature("bare", (r) => {
    r.webhook("thing.received", {
      route: "POST /bare",
      verify: stripe({ secret }),
      input: z.object({ id: z.string() }),
      id: ({ id }) => id,
      tenant: () => "acme",
      handler: () => undefined,
    });
  });
  const handler = lambdaHttp(buildServer({ features: [bare] }));
  const body = '{"id":"b1"}';
  const headers = { "content-type": "application/json", ...(await signed(body)) };
  const event = lambdaEvent("httpApi", { method: "POST", path: "/bare", headers, body });
  expect(await handler(event, lambdaContext())).toMatchObject({ statusCode: 204 });
});

test("webhooks count among the requests of their tenant that a container works on", async () => {
  const held = Promise.withResolvers<void>();
  const running = Promise.withResolvers<void>();
  world.handle = async () => {
    running.resolve();
    await held.promise;
  };
  const send = async (id: string) => {
    const body = JSON.stringify({ id, account: "acme" });
    const headers = { "content-type": "application/json", ...(await signed(body)) };
    return (await app.fetch("/hooks/stripe", { method: "POST", headers, body })).status;
  };
  const first = send("c1");
  await running.promise;
  expect(await send("c2")).toBe(429);
  held.resolve();
  expect(await first).toBe(204);
});
