import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { buildServer } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { parcels } from "../fixtures/effects.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const secret = "a secret that all processes of this test share";
const fixture = join(import.meta.dirname, "../fixtures/effects.ts");
const ann = { id: "ann", tenantId: "acme" };

let app: TestApp;
let one: StartedProcess | undefined;
beforeEach(async () => {
  app = await startTestApp(buildServer({ features: [parcels] })); // makes the tables and the queues
  await app.settled();
});
afterEach(async () => {
  if (one !== undefined) {
    signalGroup(one, "SIGKILL");
    await one.exited;
  }
  await app.close();
});

async function start(env: Readonly<Record<string, string>>): Promise<StartedProcess> {
  one = await startProcess(process.execPath, [fixture], {
    ...app.env,
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    PORT: "0",
    KEELSON_AUTH_SECRET: secret,
    ...env,
  });
  return one;
}

async function send({ port }: StartedProcess, id: string): Promise<number> {
  const user = { tenantId: ann.tenantId, userId: ann.id, roles: [] };
  const token = await signToken({ secret, ...user }, systemClock);
  const { status } = await fetch(`http://127.0.0.1:${port}/parcels/${id}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "idempotency-key": id },
  });
  return status;
}

const said = ({ logs }: StartedProcess, msg: string) => logs.filter((line) => line["msg"] === msg);
const hears = (process: StartedProcess, msg: string) =>
  expect.poll(() => said(process, msg).length).toBeGreaterThanOrEqual(1);

/** Names of the messages that were stored and not yet sent. */
async function waiting(): Promise<unknown[]> {
  const { db } = await app.ctx(ann);
  const TableName = app.env["KEELSON_TABLE_OUTBOX"] ?? "keelson-outbox";
  const { Items = [] } = await db.send(new ScanCommand({ TableName, ConsistentRead: true }));
  return Items.map(({ type }) => type).toSorted();
}

/** What both processes have done of the effects, once nothing is left to do. */
async function doneBy({ logs }: StartedProcess): Promise<unknown[]> {
  await app.settled();
  const lines = [...logs, ...app.logs].filter(({ msg }) => msg === "parcel.done");
  return lines.map(({ what }) => what).toSorted();
}

test("A shutdown finishes a write, and sends what it has committed", async () => {
  const process = await start({ PAUSE_MS: "5000" });
  const answered = send(process, "p1");
  await hears(process, "parcel.waits");
  expect(await waiting()).toEqual([]); // the joined effects are stored with the commit
  process.child.kill("SIGTERM");
  expect(await answered).toBe(200);
  expect(await process.exited).toEqual({ code: 0, signal: null });
  expect(said(process, "shutdown.completed")).toEqual([expect.objectContaining({ clean: true })]);
  expect(await waiting()).toEqual([]);
  expect(await doneBy(process)).toEqual(["event p1", "immediate p1", "joined p1"]);
});

test("A shutdown sends committed jobs that the queue refused before", async () => {
  const gate = await gateTo(String(app.env["AWS_ENDPOINT_URL"]));
  try {
    const process = await start({ AWS_ENDPOINT_URL_SQS: gate.url });
    gate.refuses = (body) => body.includes("drained-parcels.parcel.join");
    expect(await send(process, "p2")).toBe(200);
    await hears(process, "job.dispatch_failed");
    expect(await waiting()).toEqual(["drained-parcels.parcel.join"]);
    gate.refuses = () => false;
    process.child.kill("SIGTERM");
    expect(await process.exited).toEqual({ code: 0, signal: null });
    expect(await waiting()).toEqual([]);
    expect(await doneBy(process)).toEqual(["event p2", "immediate p2", "joined p2"]);
  } finally {
    gate.close();
  }
});

test("A killed process leaves what it has committed to the sweep of another, and nothing of what it has not", async () => {
  const gate = await gateTo(String(app.env["AWS_ENDPOINT_URL"]));
  try {
    const process = await start({ AWS_ENDPOINT_URL_SQS: gate.url });
    gate.refuses = (body) => body.includes("drained-parcels.parcel.join");
    expect(await send(process, "p3")).toBe(200);
    await hears(process, "job.dispatch_failed");
    signalGroup(process, "SIGKILL");
    await process.exited;
    expect(await waiting()).toEqual(["drained-parcels.parcel.join"]);
    expect((await doneBy(process)).filter((what) => what === "joined p3")).toHaveLength(1);
  } finally {
    gate.close();
  }
});

test("A process that is killed before the commit has sent its immediate effects alone", async () => {
  const process = await start({ PAUSE_MS: "600000" });
  const answered = send(process, "p4").catch(() => "cut off");
  await hears(process, "parcel.waits");
  signalGroup(process, "SIGKILL");
  expect(await answered).toBe("cut off");
  await process.exited;
  expect(await waiting()).toEqual([]);
  // The dead process may have begun the job, whose claim lasts for half a minute.
  expect([...new Set(await doneBy(process))]).toEqual(["immediate p4"]);
});

/** A way to the queues that can be closed for some messages. */
async function gateTo(endpoint: string) {
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const isSent = String(incoming.headers["x-amz-target"]).endsWith(".SendMessage");
    if (isSent && gate.refuses(body.toString())) {
      outgoing.writeHead(503).end();
      return;
    }
    const { host: _, ...headers } = incoming.headers;
    const options = { method: incoming.method ?? "POST", headers };
    const onwards = request(new URL(String(incoming.url), endpoint), options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onwards.on("error", () => outgoing.destroy());
    onwards.end(body);
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  const gate = {
    url: `http://127.0.0.1:${port}`,
    refuses: (_body: string): boolean => false,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return gate;
}
