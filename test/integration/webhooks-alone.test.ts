import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { access, buildServer, createTenantConfig, defineFeature } from "keelson";
import { startTestApp } from "keelson/testing";
import { expect, test } from "vitest";
import { serverInternals } from "../../src/app/server/server.ts";
import { needsOf } from "../../src/tools/infra/needs.ts";

const hooks = defineFeature("hooks", (r) => {
  const config = r.config({ keys: { secret: createTenantConfig("text", { encrypted: true }) } });
  r.write("hook.ring", {
    route: "POST /ring",
    access: access.everyone,
    handler: async (ctx) => ctx.delivery.send("webhook", { url: target, body: { rung: true } }),
  });
  return { config };
});
let target = "";

test("a server that declares nothing but webhooks sends them, and its infrastructure includes their queue", async () => {
  const received: string[] = [];
  const receiver = createServer((request, response) => {
    received.push(String(request.headers["webhook-id"]));
    response.writeHead(204).end();
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => receiver.once("listening", resolve));
  target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`; // safe: it listens on TCP
  const webhook = { allowHttp: true, allowPrivate: true };
  const server = buildServer({ features: [hooks], delivery: { webhook } });
  const app = await startTestApp(server, { webhooks: webhook });
  try {
    const response = await app.fetch("/ring", { body: {}, as: { id: "ann", tenantId: "acme" } });
    expect(response.status).toBe(200);
    const { deliveryId } = (await response.json()) as { deliveryId: string };
    await app.settled();
    expect(received).toEqual([deliveryId]);
    const { jobs, tables } = needsOf(serverInternals(server));
    expect(jobs).toMatchObject({ kind: "jobs" });
    expect(tables.map(({ name }) => name)).toContain("outbox");
  } finally {
    await app.close();
    receiver.close();
  }
});

test("a delivery of a server without a queue fails with what to declare", async () => {
  const app = await startTestApp(buildServer({ features: [hooks] }));
  try {
    expect(
      (await app.fetch("/ring", { body: {}, as: { id: "ann", tenantId: "acme" } })).status,
    ).toBe(500);
    const message = app.logs.find(({ msg }) => msg === "request.failed")?.["message"];
    expect(message).toContain("or set delivery.webhook in buildServer");
  } finally {
    await app.close();
  }
});
