import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import { expect, test, vi } from "vitest";
import type { Database } from "../../base/types/database.ts";
import type { DatabaseRequest } from "../runtime/adapters.ts";
import { requestDatabases } from "./request-database.ts";

const command = new GetCommand({ TableName: "t", Key: { pk: "a" } });

function fakeClient() {
  const client = DynamoDBDocumentClient.from(new DynamoDBClient({ region: "us-east-1" }));
  const send = vi.spyOn(client, "send").mockImplementation((async () => ({})) as never);
  return { client, send };
}

const requestWith = (signal: AbortSignal | undefined): DatabaseRequest => ({
  signal,
  sessionFor: vi.fn(),
  tenantId: "acme",
  log: { error: vi.fn() },
});

test("a request's database is a document client, and without a signal its calls go to the client unchanged", async () => {
  const { client, send } = fakeClient();
  const db = requestDatabases(client)(requestWith(undefined));
  await db.send(command);

  expect(db).toBeInstanceOf(DynamoDBDocumentClient);
  expect(send).toHaveBeenCalledExactlyOnceWith(command);
});

test("creating one reads nothing of the client, which may be a slow proxy", () => {
  const asked: unknown[] = [];
  const client = new Proxy(fakeClient().client, {
    set: (target, name, value, receiver) => {
      asked.push(name);
      return Reflect.set(target, name, value, receiver);
    },
  });
  requestDatabases(client)(requestWith(undefined));

  expect(asked).toEqual([]);
});

test("each call has the request's signal, combined with its own", async () => {
  const { client, send } = fakeClient();
  const request = new AbortController();
  const own = new AbortController();
  const db = requestDatabases(client)(requestWith(request.signal));
  await db.send(command);
  await db.send(command, { abortSignal: own.signal, requestTimeout: 5 });

  expect(optionsOf(send, 0)).toEqual({ abortSignal: request.signal });
  const { abortSignal, ...rest } = optionsOf(send, 1);
  expect(rest).toEqual({ requestTimeout: 5 });
  request.abort();
  expect(abortSignal.aborted).toBe(true);
  await expect(
    requestDatabases(client)(requestWith(new AbortController().signal)).send(command, {
      abortSignal: AbortSignal.abort("own"),
    }),
  ).rejects.toBe("own");
});

test("a call with a callback passes it on", () => {
  const { client, send } = fakeClient();
  const db = requestDatabases(client)(requestWith(new AbortController().signal));
  const callback = () => {};
  db.send(command, callback);
  db.send(command, {}, callback);

  expect(send.mock.calls.map((call) => (call as unknown[])[2])).toEqual([callback, callback]);
});

test("no call starts after the signal has aborted, and the promise or the callback gets the reason", async () => {
  const { client, send } = fakeClient();
  const db: Database = requestDatabases(client)(requestWith(AbortSignal.abort("gone")));

  await expect(db.send(command)).rejects.toBe("gone");
  expect(await new Promise((resolve) => void db.send(command, resolve))).toBe("gone");
  expect(send).not.toHaveBeenCalled();
});

function optionsOf(
  send: { mock: { calls: unknown[][] } },
  call: number,
): { abortSignal: AbortSignal } & Record<string, unknown> {
  return send.mock.calls[call]?.[1] as never;
}
