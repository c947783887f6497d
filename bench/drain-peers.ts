// One of the peers of `drains.ts`, in a process of its own: `node drain-peers.ts <node:http|fastify> <linger in ms>`.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import fastify from "fastify";

const [, , name, linger] = process.argv;
let isDraining = false;

async function answer(url = ""): Promise<{ status: number; body: string }> {
  if (url === "/health/ready") return { status: isDraining ? 503 : 200, body: "{}" };
  await sleep(Number(url.split("/").pop()));
  return { status: 200, body: JSON.stringify({ limit: 10 }) };
}

if (name === "fastify") {
  const app = fastify();
  app.get("/*", async (request, reply) => {
    const { status, body } = await answer(request.url);
    return reply.status(status).type("application/json").send(body);
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  process.on("SIGTERM", async () => {
    isDraining = true;
    await sleep(Number(linger));
    await app.close();
    process.exit();
  });
  started(app.server.address());
} else {
  const http = createServer(async (request, response) => {
    const { status, body } = await answer(request.url);
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  process.on("SIGTERM", () => {
    isDraining = true;
    http.close(() => process.exit());
  });
  http.listen(0, "127.0.0.1", () => started(http.address()));
}

function started(address: unknown): void {
  console.log(JSON.stringify({ msg: "server.started", port: (address as AddressInfo).port })); // safe: it listens on a port
}
