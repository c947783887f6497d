import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { SQSClient } from "@aws-sdk/client-sqs";
import { expect, test, vi } from "vitest";
import { isInstrumented } from "./client-options.ts";
import { closeDatabase, openDatabase } from "./dynamodb.ts";

const credentials = { accessKeyId: "test", secretAccessKey: "test" };
const body = JSON.stringify({ Item: { id: { S: "ä".repeat(10) } } });

/** Asks a server for an item that answers each call in its own way. */
async function itemFrom(
  answer: (response: ServerResponse, bytes: Buffer) => void,
  attempts: { attemptMs?: number } = {},
) {
  let calls = 0;
  const http = createServer((_request, response) => {
    calls += 1;
    const bytes = Buffer.from(body);
    response.setHeader("content-type", "application/x-amz-json-1.0");
    response.setHeader("content-length", bytes.length);
    answer(response, bytes);
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port
  const database = await openDatabase({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials,
    ...attempts,
  });
  try {
    const { Item } = await database.send(
      new GetItemCommand({ TableName: "t", Key: { id: { S: "1" } } }),
    );
    return { Item, calls };
  } catch (error) {
    return { error, calls };
  } finally {
    database.destroy();
    http.closeAllConnections();
    http.close();
  }
}

test("joins a response that arrives in pieces, even if cut within a character", async () => {
  const found = await itemFrom((response, bytes) => {
    const middle = bytes.indexOf("ä") + 1;
    response.write(bytes.subarray(0, middle), () => response.end(bytes.subarray(middle)));
  });
  expect(found).toEqual({ Item: { id: { S: "ä".repeat(10) } }, calls: 1 });
});

test("fails after the SDK's retries when the connection ends within the response, and leaves no caller waiting", async () => {
  const { error, calls } = await itemFrom((response, bytes) => {
    response.write(bytes.subarray(0, 10), () => response.destroy());
  });
  expect(error).toMatchObject({ code: "ECONNRESET" });
  expect(calls).toBeGreaterThan(1);
});

test.each<[string, Parameters<typeof itemFrom>[0]]>([
  ["is never answered", () => {}],
  ["whose answer stops before its end", (response, bytes) => response.write(bytes.subarray(0, 10))],
])("a call that %s fails after the SDK's retries", async (_, answer) => {
  const { error, calls } = await itemFrom(answer, { attemptMs: 20 });
  expect(error).toMatchObject({ name: "TimeoutError" });
  expect(calls).toBeGreaterThan(1);
});

test.each([
  [undefined, 5_000],
  ["https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com", 5_000],
  ["http://127.0.0.1:1", 30_000], // an emulator starts slowly
])("limits an attempt at the endpoint %s to %d ms", async (endpoint, ms) => {
  const { config } = await openDatabase({ endpoint, region: "us-east-1" });
  // Safe: in Node, the SDK's handler has this method.
  const requestHandler = config.requestHandler as typeof config.requestHandler & {
    httpHandlerConfigs(): object;
  };
  const nowhere = { protocol: "http:", hostname: "127.0.0.1", port: 1, method: "GET", path: "/" };
  // The handler has no configuration before its first request.
  const refused = requestHandler.handle({ ...nowhere, headers: {} } as never); // all it asks of one
  await expect(refused).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(requestHandler.httpHandlerConfigs()).toMatchObject({ socketTimeout: ms });
});

test("a connection that is never made fails its call after the SDK's retries", async () => {
  const connect = vi.spyOn(Socket.prototype, "connect").mockReturnThis();
  const database = await openDatabase({
    endpoint: "https://127.0.0.1:1",
    region: "us-east-1",
    credentials,
    attemptMs: 20,
  });
  const get = new GetItemCommand({ TableName: "t", Key: { id: { S: "1" } } });
  try {
    await expect(database.send(get)).rejects.toMatchObject({ name: "TimeoutError" });
    expect(connect.mock.calls.length).toBeGreaterThan(1);
  } finally {
    connect.mockRestore();
    closeDatabase(database);
  }
});

test("the wait for a connection that other calls use is not part of an attempt", async () => {
  const slow = createServer((_request, response) => {
    setTimeout(() => response.end("{}"), 500);
  }).listen(0, "127.0.0.1");
  await once(slow, "listening");
  const { port } = slow.address() as AddressInfo; // safe: it listens on a port
  const database = await openDatabase({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials,
    attemptMs: 3_000,
  });
  const get = () => database.send(new GetItemCommand({ TableName: "t", Key: { id: { S: "1" } } }));
  // At least 5 s: the SDK has 50 connections.
  await Promise.all(Array.from({ length: 500 }, get));
  closeDatabase(database);
  slow.close();
});

test("recognizes an instrumented client by the marks that OpenTelemetry puts on the functions it wraps", () => {
  const client = new SQSClient({ region: "us-east-1" });
  expect(isInstrumented(client)).toBe(false);
  expect(isInstrumented({ send: Object.assign(() => undefined, { __wrapped: true }) })).toBe(true);
  client.destroy();
});

test("closing a database closes its connections", async () => {
  const sockets: Socket[] = [];
  const http = createServer((_request, response) => response.end("{}")).listen(0, "127.0.0.1");
  http.keepAliveTimeout = 0; // the server closes none of them
  http.on("connection", (socket) => sockets.push(socket));
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port
  const database = await openDatabase({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials,
  });
  const get = () => database.send(new GetItemCommand({ TableName: "t", Key: { id: { S: "1" } } }));
  await Promise.all([get(), get()]);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  const closing = Promise.all(sockets.map((socket) => once(socket, "close")));
  closeDatabase(database);
  await closing;
  http.close();
});
