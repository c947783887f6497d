import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { crc32 } from "node:zlib";
import { marshall } from "@aws-sdk/util-dynamodb";
import { afterEach, describe, expect, test } from "vitest";
import type { RowAddress } from "../../parts/config/read/rows.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { createLeanRows } from "../light/lean-rows.ts";
import { dynamoConfigRows } from "./config-rows.ts";

const opened: (() => void)[] = [];
afterEach(() => {
  for (const close of opened.splice(0)) close();
});

interface Call {
  /** Of a Query, all keys from the first to the last. */
  readonly keys: readonly {
    readonly pk: { readonly S: string };
    readonly sk: { readonly S: string };
  }[];
  readonly consistent: boolean;
  /** Of a Query. */
  readonly limit: number | undefined;
  /** From 1. */
  readonly number: number;
  readonly request: IncomingMessage;
}

type Store = (response: ServerResponse, call: Call) => void;

/** A store that answers each call as `answer` does, and its reader: by the SDK alone, or first without it. */
async function readerOf(isLean: boolean, answer: Store, timeoutMs?: number) {
  const calls: Call[] = [];
  const http = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const input = JSON.parse(body);
    const { Keys: keys = [], ConsistentRead: consistent } = input.RequestItems?.config ?? input;
    const call = { keys, consistent, number: calls.length + 1, request, limit: input.Limit };
    calls.push(call);
    answer(response, call);
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port
  const endpoint = `http://127.0.0.1:${port}`;
  const account = {
    region: "us-east-1",
    credentials: { accessKeyId: "AKID", secretAccessKey: "secret" },
  };
  const database = await openDatabase({ endpoint, ...account });
  const lean = createLeanRows(
    { endpoint: new URL(endpoint), ...account },
    timeoutMs === undefined ? {} : { timeoutMs },
  );
  opened.push(() => {
    database.destroy();
    lean.close();
    http.closeAllConnections();
    http.close();
  });
  const reader = dynamoConfigRows(database, "config", {
    wait: async () => {},
    ...(isLean ? { early: lean } : {}),
  });
  const bySdk = () =>
    calls.filter(({ request }) => request.headers["user-agent"] !== undefined).length;
  return { ...reader, calls, bySdk };
}

const at = (key: string): RowAddress => ({ partition: "config#system", key });
const row = (key: string, value: unknown = key, partition = "config#system") =>
  marshall({ pk: partition, sk: key, value, version: 1 });

function send(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const sum = { "x-amz-crc32": String(crc32(bytes)) };
  response
    .writeHead(status, { "content-type": "application/x-amz-json-1.0", ...sum, ...headers })
    .end(bytes);
}

const all: Store = (response, { keys }) =>
  send(response, { Responses: { config: keys.map(({ sk }) => row(sk.S)) } });

describe.each([
  ["the SDK", false],
  ["a lean request", true],
])("rows read by %s", (_name, isLean) => {
  test("come in the requested order, with undefined for absent ones", async () => {
    const store = await readerOf(isLean, (response) =>
      send(response, { Responses: { config: [row("b"), row("a")] } }),
    );
    const rows = await store.read([at("a"), at("x"), at("b")]);

    expect(rows.map((found) => found?.value)).toEqual(["a", undefined, "b"]);
    expect(store.bySdk()).toBe(isLean ? 0 : 1);
  });

  test("are signed with the credentials of the environment", async () => {
    const store = await readerOf(isLean, all);
    await store.read([at("a")]);

    const { authorization } = store.calls[0]?.request.headers ?? {};
    expect(authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/us-east-1\/dynamodb\/aws4_request, SignedHeaders=/,
    );
  });

  test("have values of every kind, beyond ASCII too", async () => {
    const values = [
      "ä€🙂",
      1.5,
      true,
      null,
      ["x", { y: 1 }],
      { sealed: 1, data: "…" },
      new Set(["a"]),
    ];
    const rowsOf = values.map((value, index) => row(`k${index}`, value));
    const store = await readerOf(isLean, (response) =>
      send(response, { Responses: { config: rowsOf }, Items: rowsOf }),
    );
    const rows = await store.read(values.map((_value, index) => at(`k${index}`)));

    expect(rows.map((found) => found?.value)).toEqual(values);
  });

  test("are requested in chunks of a hundred if their partitions differ", async () => {
    const store = await readerOf(isLean, (response, { keys }) =>
      send(response, { Responses: { config: keys.map(({ pk }) => row("a", pk.S, pk.S)) } }),
    );
    const partitions = Array.from({ length: 250 }, (_, index) => `config#tenant#t${index}`);
    const rows = await store.read(partitions.map((partition) => ({ partition, key: "a" })));

    expect(store.calls.map(({ keys }) => keys.length).sort()).toEqual([100, 100, 50]);
    expect(rows.map((found) => found?.value)).toEqual(partitions);
  });

  test("of many keys in one partition come from one Query, which leaves rows of other keys out", async () => {
    const store = await readerOf(isLean, (response) =>
      send(response, { Items: [row("k1"), row("k12-undeclared"), row("k9")] }),
    );
    const keys = Array.from({ length: 10 }, (_, index) => at(`k${index}`));
    const rows = await store.read(keys, { consistent: false });

    expect(rows.map((found) => found?.value)).toEqual(
      keys.map(({ key }) => (["k1", "k9"].includes(key) ? key : undefined)),
    );
    expect(store.calls).toMatchObject([{ keys: [], consistent: false, limit: 20 }]);
    expect(store.bySdk()).toBe(isLean ? 0 : 1);
  });

  test("that a Query did not reach are read afterwards", async () => {
    const store = await readerOf(isLean, (response, { keys, limit }) => {
      if (limit === undefined) return all(response, { keys } as Call);
      const found = { Items: [row("k0"), row("k1"), row("k1-a"), row("k1-b")] };
      return send(response, { ...found, LastEvaluatedKey: { pk: { S: "" }, sk: { S: "k1-b" } } });
    });
    const keys = Array.from({ length: 10 }, (_, index) => at(`k${index}`));
    const rows = await store.read(keys);

    expect(rows.map((found) => found?.value)).toEqual(keys.map(({ key }) => key));
    expect(store.calls.map(({ keys }) => keys.length)).toEqual(isLean ? [0, 0, 8] : [0, 8]);
  });

  test("are read consistently unless requested otherwise", async () => {
    const store = await readerOf(isLean, all);
    await store.read([at("a")]);
    await store.read([at("a")], { consistent: false });

    expect(store.calls.map(({ consistent }) => consistent)).toEqual([true, false]);
  });

  test.each<[string, Store]>([
    [
      "are throttled",
      (response) => send(response, { __type: "a#ProvisionedThroughputExceededException" }, 400),
    ],
    ["fail in the store", (response) => send(response, { __type: "a#InternalServerError" }, 500)],
    [
      "are left unprocessed",
      (response, { keys }) => send(response, { UnprocessedKeys: { config: { Keys: keys } } }),
    ],
    ["never arrive", (response) => response.destroy()],
    [
      "arrive in part",
      (response) =>
        response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy()),
    ],
  ])("that %s at first are read again", async (_what, fault) => {
    const store = await readerOf(isLean, (response, call) =>
      (call.number === 1 ? fault : all)(response, call),
    );

    expect((await store.read([at("a")])).map((found) => found?.value)).toEqual(["a"]);
    expect(store.calls).toHaveLength(2);
    expect(store.bySdk()).toBe(isLean ? 1 : 2);
  });

  test("that the store rejects fail with the reason, without a secret", async () => {
    const refused: Store = (response) =>
      send(
        response,
        { __type: "com.amazon.coral.service#AccessDeniedException", message: "not allowed" },
        400,
      );
    const store = await readerOf(isLean, refused);
    const reading = store.read([at("a")]);

    await expect(reading).rejects.toThrow("not allowed");
    await expect(reading).rejects.not.toThrow("secret");
    expect(store.bySdk()).toBe(1);
  });
});

describe("a lean request", () => {
  test.each<[string, Store]>([
    ["is no JSON", (response) => send(response, "<html>")],
    ["has no rows in it", (response) => send(response, {})],
    [
      "has a value that is none",
      (response) => send(response, { Responses: { config: [{ pk: { X: 1 } }] } }),
    ],
    [
      "was changed on its way",
      (response) => send(response, { Responses: {} }, 200, { "x-amz-crc32": "1" }),
    ],
    ["is a redirection", (response) => send(response, "", 307, { location: "/" })],
    [
      "is compressed",
      (response) => send(response, { Responses: {} }, 200, { "content-encoding": "br" }),
    ],
    ["does not come in time", () => {}],
  ])("with the answer %s leaves later calls to the SDK", async (_what, fault) => {
    const store = await readerOf(
      true,
      (response, call) => (call.number === 1 ? fault : all)(response, call),
      100,
    );

    for (const key of ["a", "b"]) expect((await store.read([at(key)]))[0]?.value).toBe(key);
    expect(store.calls).toHaveLength(3);
    expect(store.bySdk()).toBe(2);
  });

  test("to a table without rows gets an answer, even without a checksum", async () => {
    const store = await readerOf(
      true,
      (response) => void response.end('{"Responses":{},"UnprocessedKeys":{}}'),
    );

    expect(await store.read([at("a")])).toEqual([undefined]);
    expect(store.bySdk()).toBe(0);
  });

  test("is not sent to a server with an untrusted certificate", async () => {
    const [cert, key] = ["cert", "key"].map((name) =>
      readFileSync(`test/fixtures/tls/localhost-${name}.pem`),
    );
    const requests: unknown[] = [];
    const https = createTlsServer({ cert, key }, (request) => requests.push(request)).listen(
      0,
      "127.0.0.1",
    );
    await once(https, "listening");
    const { port } = https.address() as AddressInfo; // safe: it listens on a port
    const credentials = { accessKeyId: "AKID", secretAccessKey: "secret" };
    const lean = createLeanRows({
      endpoint: new URL(`https://localhost:${port}`),
      region: "us-east-1",
      credentials,
    });
    opened.push(lean.close, () => https.close());

    expect(
      await lean.read("config", { operation: "Query", input: { TableName: "config" } }),
    ).toBeUndefined();
    expect(requests).toEqual([]);
  });

  test("keeps its connection for the next", async () => {
    const store = await readerOf(true, all);
    await store.read([at("a")]);
    await store.read([at("b")]);

    expect(new Set(store.calls.map(({ request }) => request.socket.remotePort)).size).toBe(1);
  });
});
