import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { access } from "../../../base/identity/access.ts";
import type { Environment } from "../../../base/process/environment.ts";
import { lambdaHttp } from "../../../hosts/lambda-http/http-handler.ts";
import { lambdaContext, lambdaEvent } from "../lambda-event.ts";
import { testToken } from "./caller.ts";
import { startTestApp, type TestAppOptions } from "./test-app.ts";

const hooks = defineFeature("hooks", (r) => {
  r.event("hook.sent", z.object({}));
  r.query("hook.break", {
    route: "GET /break",
    access: access.everyone,
    handler: async () => {
      throw new Error("it broke");
    },
  });
  r.query("hook.lie", { output: z.number(), handler: async () => "text" as never });
  r.query("hook.who", {
    route: "GET /who",
    access: access.authenticated,
    handler: async ({ user }) => user,
  });
  r.write("hook.send", {
    input: z.object({ url: z.string() }),
    handler: async (ctx, { url }) => {
      await ctx.delivery.send("webhook", { url, body: {} });
    },
  });
});

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Which environment an app runs in, by how it answers. */
async function environmentIn(
  own: { readonly environment?: Environment },
  options: TestAppOptions,
): Promise<Environment> {
  const app = await startTestApp(
    buildServer({ features: [hooks], output: { check: "development" }, ...own }),
    options,
  );
  try {
    const { stack } = (await (await app.fetch("/break")).json()) as { stack?: string };
    if (stack !== undefined) return "development";
    const lie = await app.call("hooks.hook.lie").then(
      () => "told",
      () => "found out",
    );
    return lie === "told" ? "production" : "test";
  } finally {
    await app.close();
  }
}

test.each<
  [string | undefined, { readonly environment?: Environment }, TestAppOptions, Environment]
>([
  [undefined, {}, {}, "test"],
  ["production", {}, {}, "test"],
  ["development", {}, {}, "test"],
  ["test", {}, { environment: "development" }, "development"],
  ["test", { environment: "production" }, {}, "production"],
  ["test", { environment: "production" }, { environment: "test" }, "test"],
])(
  "with NODE_ENV %s, %j of the server and %j of the app, the environment is %s",
  async (NODE_ENV, own, options, expected) => {
    vi.stubEnv("NODE_ENV", NODE_ENV);
    expect(await environmentIn(own, options)).toBe(expected);
  },
);

test("the app's webhook options override the server's", async () => {
  const received: string[] = [];
  const sink = createServer((request, response) => {
    received.push(String(request.url));
    response.end();
  }).listen(0, "127.0.0.1");
  await once(sink, "listening");
  const { port } = sink.address() as AddressInfo; // it listens on TCP
  const server = buildServer({ features: [hooks], delivery: { webhook: { allowHttp: true } } });
  const allowed = await startTestApp(server, { webhooks: { allowPrivate: true } });
  const own = await startTestApp(server);
  try {
    for (const [app, path] of [
      [allowed, "allowed"],
      [own, "own"],
    ] as const) {
      await app.call("hooks.hook.send", { url: `http://127.0.0.1:${port}/${path}` });
    }
    await allowed.settled();
    await expect(own.settled()).rejects.toThrow("in the dead-letter queue");
    expect(received).toEqual(["/allowed"]);
  } finally {
    sink.close();
    await Promise.all([allowed.close(), own.close()]);
  }
});

test("the app signs with the first of several secrets", async () => {
  const auth = { secret: ["a".repeat(32), "b".repeat(32)] };
  const app = await startTestApp(buildServer({ features: [hooks], auth }));
  expect((await app.fetch("/who", { as: { id: "ann", tenantId: "acme" } })).status).toBe(200);
  expect(app.env["KEELSON_AUTH_SECRET"]).toBe(auth.secret[0]);
  await app.close();
});

test("the app accepts its own token over HTTP until it expires, and a Lambda function accepts a test token", async () => {
  const server = () =>
    buildServer({ features: [hooks], auth: { jwks: "https://a.example/keys", issuer: "us" } });
  const app = await startTestApp(server());
  try {
    const token = await app.token({ id: "ann", tenantId: "acme" }, { expiresInSeconds: 60 });
    const headers = { authorization: `Bearer ${token}` };
    expect((await app.fetch("/who", { headers })).status).toBe(200);
    app.clock.advance(61_000);
    expect((await app.fetch("/who", { headers })).status).toBe(401);

    for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
    const bare = buildServer({ features: [hooks] });
    const event = lambdaEvent("httpApi", {
      path: "/who",
      headers: {
        authorization: `Bearer ${await testToken(bare, { id: "bob", tenantId: "acme" })}`,
      },
    });
    expect(await lambdaHttp(bare)(event, lambdaContext())).toMatchObject({ statusCode: 200 });
  } finally {
    await app.close();
  }
});
