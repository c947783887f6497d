import middy from "@middy/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { timeIsOver } from "../../../test/support/time-is-over.ts";
import { waitFor } from "../../../test/support/wait-for.ts";
import { buildServer } from "../../app/server/server.ts";
import { ConflictError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { type AdoptedContext, requestScope } from "./middy.ts";

let logs: Record<string, unknown>[];

beforeEach(() => {
  logs = [];
  vi.spyOn(process.stdout, "write").mockImplementation((line) => {
    logs.push(JSON.parse(String(line)) as Record<string, unknown>);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Handler = (
  event: unknown,
  context: AdoptedContext,
  options: { signal: AbortSignal },
) => unknown;
type Options = Omit<middy.PluginObject, "executionMode">;

const record = { Records: [] };
const http = {
  version: "2.0",
  rawPath: "/",
  headers: { "x-request-id": "r1" },
  requestContext: { http: { method: "GET" } },
};
const lasting = (ms: number) => ({ getRemainingTimeInMillis: () => ms });

/** Calls a function that exists already, with options of Middy's. */
async function call(
  existing: Handler,
  options: Options = {},
  event: object = record,
  context: object = {},
) {
  const executionMode = requestScope(buildServer({ features: [] }), {
    handler: "legacy.thing.do",
    access: access.everyone,
  });
  const handler = middy({ ...options, executionMode } as never).handler(existing as never);
  // Safe: what comes back is looked at by the tests.
  return (await handler(event as never, context as never)) as unknown as {
    statusCode: number;
    body: string;
  };
}

const hangs: Handler = () => new Promise(() => {});
const failed = (error: unknown) => async () => {
  throw error;
};

test("an error of requestEnd becomes the cause of the handler's error, unless that has one", async () => {
  const end = new Error("requestEnd");
  const own = new Error("own");
  const ends = { requestEnd: failed(end) };
  const plain = new Error("plain");
  await expect(call(failed(plain), ends)).rejects.toBe(plain);
  expect(plain.cause).toBe(end);
  const caused = new Error("caused", { cause: own });
  await expect(call(failed(caused), ends)).rejects.toBe(caused);
  expect(caused.cause).toBe(own);
  const frozen = Object.freeze(new Error("frozen"));
  for (const thrown of ["text", null, undefined, frozen])
    await expect(call(failed(thrown), ends)).rejects.toBe(thrown);
  const conflict = await call(failed(new ConflictError("taken")), ends, http);
  expect([conflict.statusCode, JSON.parse(conflict.body).error]).toEqual([409, "taken"]);
});

test("an error of requestEnd fails a call whose handler succeeded, thrown at once or later", async () => {
  const end = new Error("requestEnd");
  await expect(call(() => 1, { requestEnd: failed(end) })).rejects.toBe(end);
  const atOnce = () => {
    throw end;
  };
  await expect(call(() => 1, { requestEnd: atOnce })).rejects.toBe(end);
  expect((await call(() => ({ statusCode: 200 }), { requestEnd: atOnce }, http)).statusCode).toBe(
    500,
  );
});

test("waits for the result of a hook only if it is a promise", async () => {
  const [thenable, wait] = ["then", vi.fn()];
  const order: string[] = [];
  expect(await call(() => "done", { requestEnd: () => ({ [thenable]: wait }) })).toBe("done");
  expect(wait).not.toHaveBeenCalled();
  await call(() => order.push("handler"), {
    requestEnd: async () => order.push(await Promise.resolve("end")),
  });
  expect(order).toEqual(["handler", "end"]);
});

test("the handler's third argument has the signal of its ctx, which aborts when the time is over", async () => {
  let given: AbortSignal | undefined;
  const waits: Handler = (_event, { keelson }, { signal }) => {
    expect(signal).toBe(keelson.signal);
    given = signal;
    timeIsOver();
    return new Promise((_resolve, reject) => {
      signal.onabort = () => reject(signal.reason);
    });
  };
  expect((await call(waits, {}, http, lasting(30_000))).statusCode).toBe(504);
  expect(given?.aborted).toBe(true);
  vi.mocked(performance.now).mockRestore();
  await expect(call(waits, {}, record, lasting(30_000))).rejects.toThrow();
  expect(given?.aborted).toBe(true);
});

test("without a time limit, the handler has a signal that never aborts", async () => {
  for (const event of [record, http]) {
    let given: AbortSignal | undefined;
    await call(
      (_event, { keelson }, { signal }) => {
        given = signal;
        return { statusCode: 200, signal: keelson.signal };
      },
      {},
      event,
    );
    expect(given?.aborted).toBe(false);
  }
});

test("timeoutEarlyInMillis sets how long before the end the response comes; Middy's default is ignored", async () => {
  expect(
    (await call(hangs, { timeoutEarlyInMillis: 59_950 }, http, lasting(60_000))).statusCode,
  ).toBe(504);
  expect(logs).toContainEqual(expect.objectContaining({ msg: "handler.abandoned", afterMs: 50 }));
  expect((await call(hangs, { timeoutEarlyInMillis: 5 }, http, lasting(80))).statusCode).toBe(504);
  expect(logs).toContainEqual(expect.objectContaining({ msg: "handler.abandoned", afterMs: 30 }));
});

test("timeoutEarlyInMillis of 0 turns the early timeout off, and the signal does not abort", async () => {
  let finish: (value: unknown) => void = () => {};
  const waiting = new Promise((resolve) => {
    finish = resolve;
  });
  let signals: unknown[] = [];
  const running = call(
    async (_event, { keelson }, { signal }) => {
      signals = [keelson.signal?.aborted, signal.aborted];
      await waiting;
      return { statusCode: 200, body: `${keelson.signal?.aborted}` };
    },
    { timeoutEarlyInMillis: 0, timeoutEarlyResponse: () => ({ statusCode: 599 }) },
    http,
    lasting(1),
  );
  await waitFor(() => expect(signals).toEqual([false, false]));
  await call(hangs, {}, http, lasting(60)); // longer than the other one had
  finish(undefined);
  expect(await running).toMatchObject({ statusCode: 200, body: "false" });
});

test.each([
  ["what it returns", () => ({ statusCode: 503, body: "busy" }), [503, "busy"]],
  ["what it returns later", async () => ({ statusCode: 503, body: "busy" }), [503, "busy"]],
  [
    "the typed error that it throws",
    failed(new ConflictError("late")),
    [409, expect.stringContaining('"late"')],
  ],
  [
    "a 500 of any other error that it throws",
    failed(new Error("own")),
    [500, expect.stringContaining("internal_error")],
  ],
  [
    "a 500 of what is no answer",
    () => ({ statusCode: 1 }),
    [500, expect.stringContaining("internal_error")],
  ],
])(
  "timeoutEarlyResponse answers when the time is over: %s",
  async (_what, timeoutEarlyResponse, expected) => {
    const { statusCode, body } = await call(hangs, { timeoutEarlyResponse }, http, lasting(60));
    expect([statusCode, body]).toEqual(expected);
  },
);

test("an early timeout of an event that is not HTTP is Middy's own error, or the option's result", async () => {
  await expect(call(hangs, {}, record, lasting(60))).rejects.toMatchObject({
    name: "TimeoutError",
  });
  expect(logs).toContainEqual(
    expect.objectContaining({ msg: "request.failed", error: "timeout", status: 504 }),
  );
  expect(await call(hangs, { timeoutEarlyResponse: () => "early" }, record, lasting(60))).toBe(
    "early",
  );
});

test.each([
  ["its status and message", { statusCode: 422 }, [422, "the message"]],
  [
    "no message that is not to be shown",
    { statusCode: 403, expose: false },
    [403, "The request was refused"],
  ],
  [
    "none of its own where the status says that the server failed",
    { statusCode: 503 },
    [500, "Internal server error"],
  ],
  [
    "none of its own where the status is none",
    { statusCode: 422.5 },
    [500, "Internal server error"],
  ],
])("the response to an error of Middy's middlewares has %s", async (_what, members, expected) => {
  const { statusCode, body } = await call(
    failed(Object.assign(new Error("the message"), members)),
    {},
    http,
  );
  expect([statusCode, JSON.parse(body).message]).toEqual(expected);
});

test("the response to an error of Middy's middlewares has the error's headers", async () => {
  const error = Object.assign(new Error("slow down"), {
    statusCode: 429,
    headers: { "Retry-After": "5" },
  });
  expect(await call(failed(error), {}, http)).toMatchObject({
    statusCode: 429,
    headers: { "retry-after": "5" },
  });
});
