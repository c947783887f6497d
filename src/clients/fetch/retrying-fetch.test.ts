import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { FetchFailedError, type Retry, type RetryingFetchOptions, retryingFetch } from "./index.ts";
import { wait } from "./retry-rule.ts";
import { createRetryingFetch } from "./retrying-fetch.ts";

type Step = (response: ServerResponse, request: IncomingMessage) => void;

interface Arrived {
  readonly method: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const arrived: Arrived[] = [];
let steps: Step[] = [];
let server: Server;
let origin = "";

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const step = steps.shift() ?? answer(200, { ok: true });
    const { method, headers } = request;
    arrived.push({ method, headers, body: await text(request).catch(() => "") });
    step(response, request);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  arrived.length = 0;
  steps = [];
});

/** A step that answers with JSON. */
function answer(status: number, body: unknown, headers: Record<string, string> = {}): Step {
  return (response) => {
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify(body));
  };
}

const failing = (status: number, error: string, headers: Record<string, string> = {}) =>
  answer(status, { error, message: "no", requestId: "r1" }, headers);
const reset: Step = (_response, request) => request.socket.resetAndDestroy();
const hanging: Step = () => {};
const gateway = (status: number): Step => {
  return (response) =>
    response.writeHead(status, { "content-type": "text/html" }).end("<h1>sorry</h1>");
};

/** A retrying fetch whose time passes at once, its pauses in milliseconds, and what it told of them. */
function instant(options: RetryingFetchOptions = {}) {
  const waits: number[] = [];
  const retries: Retry[] = [];
  let nowMs = Date.parse("2026-11-22T10:00:00Z");
  const fetch = createRetryingFetch(
    { onRetry: (retry) => retries.push(retry), ...options },
    {
      now: () => nowMs,
      random: () => 1,
      wait: async (ms, signal) => {
        signal.throwIfAborted();
        waits.push(ms);
        nowMs += ms;
      },
    },
  );
  return { fetch, waits, retries };
}

const post = {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: '{"name":"a.txt"}',
};
const keys = () => new Set(arrived.map(({ headers }) => headers["idempotency-key"]));
const ids = () => new Set(arrived.map(({ headers }) => headers["x-request-id"]));

test("resends a failed write with the same key, request ID and body", async () => {
  steps = [reset, gateway(502), gateway(503), gateway(504)];
  const { fetch, waits } = instant();

  const response = await fetch(`${origin}/files`, post);

  expect(await response.json()).toEqual({ ok: true });
  expect(arrived.map(({ method, body }) => `${method} ${body}`)).toEqual(
    Array(5).fill('POST {"name":"a.txt"}'),
  );
  expect([...keys()]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
  expect([...ids()]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
  expect(keys()).not.toEqual(ids());
  expect(waits).toEqual([250, 500, 1_000, 2_000]);
});

test("gives two writes two keys", async () => {
  const { fetch } = instant();

  await fetch(origin, post);
  await fetch(origin, post);

  expect([keys().size, ids().size]).toEqual([2, 2]);
});

test.each(["PUT", "PATCH", "DELETE"])("a %s gets a key", async (method) => {
  await instant().fetch(origin, { method });

  expect([...keys()]).toEqual([expect.any(String)]);
});

test("a read gets a request ID and no key", async () => {
  steps = [reset];

  await instant().fetch(origin);

  expect(arrived).toHaveLength(2);
  expect([...keys()]).toEqual([undefined]);
  expect(ids().size).toBe(1);
});

test("sends the caller's own key and request ID", async () => {
  steps = [reset];

  await instant().fetch(origin, {
    ...post,
    headers: { "Idempotency-Key": "k1", "X-Request-ID": "r1" },
  });

  expect([...keys(), ...ids()]).toEqual(["k1", "r1"]);
});

test.each([
  failing(409, "request_in_progress", { "retry-after": "1" }),
  failing(429, "too_many_requests", { "retry-after": "1" }),
  failing(503, "overloaded", { "retry-after": "1" }),
  failing(503, "config_unavailable", { "retry-after": "1" }),
  failing(503, "isolation_unavailable", { "retry-after": "1" }),
  failing(503, "archive_busy", { "retry-after": "1" }),
  failing(429, "sms_limit", { ratelimit: '"sms";r=0;t=1' }),
  failing(504, "timeout", { "retry-after": "1" }),
])("retries a transient error after the pause that Retry-After asks for: case %#", async (step) => {
  steps = [step];
  const { fetch, waits } = instant();

  expect((await fetch(origin, post)).status).toBe(200);
  expect(waits).toEqual([1_250]);
});

test.each([
  [409, "unknown_outcome"],
  [409, "file_locked"],
  [422, "validation_error"],
  [500, "internal_error"],
  [500, "response_too_large"],
  [503, "archive_busy"],
])("returns %i %s to the caller, with a readable body", async (status, error) => {
  steps = [failing(status, error)];

  const response = await instant().fetch(origin, post);

  expect(arrived).toHaveLength(1);
  expect([response.status, await response.json()]).toEqual([
    status,
    { error, message: "no", requestId: "r1" },
  ]);
});

test("returns the last response to the caller, with a readable body", async () => {
  steps = [1, 2, 3].map((attempt) => failing(503, "overloaded", { "x-request-id": `r${attempt}` }));

  const response = await instant({ attempts: 3 }).fetch(origin, post);

  expect([response.status, response.headers.get("x-request-id")]).toEqual([503, "r3"]);
  expect(await response.json()).toMatchObject({ error: "overloaded" });
});

test("reads the code of a problem+json body", async () => {
  const problem = { error: "unknown_outcome", status: 409 };
  steps = [
    answer(
      409,
      { ...problem, error: "request_in_progress" },
      { "content-type": "application/problem+json" },
    ),
  ];
  steps.push(answer(409, problem, { "content-type": "application/problem+json; charset=utf-8" }));

  expect(await (await instant().fetch(origin, post)).json()).toEqual(problem);
  expect(arrived).toHaveLength(2);
});

test.each(["{", "null", "7", "[]", '{"error":7}', '{"message":"Service Unavailable"}'])(
  "treats JSON without a code as a gateway's response: %s",
  async (body) => {
    steps = [
      (response) => response.writeHead(503, { "content-type": "application/json" }).end(body),
    ];

    expect((await instant().fetch(origin, post)).status).toBe(200);
  },
);

test("treats a response without a content type as a gateway's", async () => {
  steps = [(response) => response.writeHead(503).end()];

  expect((await instant().fetch(origin)).status).toBe(200);
});

test("retries a response that breaks off before its code is known", async () => {
  steps = [
    (response, request) => {
      response.writeHead(409, { "content-type": "application/json", "content-length": "100" });
      response.write('{"error":', () => request.socket.resetAndDestroy());
    },
  ];

  expect((await instant().fetch(origin, post)).status).toBe(200);
});

test("does not retry when the server asks for more time than is left", async () => {
  steps = [failing(503, "overloaded", { "retry-after": "3600" })];
  const { fetch, waits } = instant();

  expect((await fetch(origin, post)).headers.get("retry-after")).toBe("3600");
  expect(waits).toEqual([]);
});

test("stops when the call's total time is over, even with attempts left", async () => {
  steps = Array(100).fill(failing(503, "overloaded", { "retry-after": "4" }));
  const { fetch, waits } = instant({ attempts: 100, totalMs: 20_000 });

  expect((await fetch(origin, post)).status).toBe(503);
  expect(waits).toEqual([4_250, 4_500, 5_000, 6_000]);
});

test.each<[string, Step, object]>([
  ["without a response", reset, { name: "TypeError" }],
  ["after a response", failing(503, "overloaded"), { name: "TimeoutError" }],
])(
  "%s, does not repeat a call after a pause in which the machine slept for longer than its time",
  async (_when, step, cause) => {
    steps = [step];
    let nowMs = 0;
    const asleep = async () => {
      nowMs += 600_000;
    };
    const fetch = createRetryingFetch({}, { now: () => nowMs, random: () => 1, wait: asleep });

    await expect(fetch(origin, post)).rejects.toMatchObject({ attempts: 1, cause });
    expect(arrived).toHaveLength(1);
  },
);

test("without a response, throws a TypeError that names the call and its request ID but not the query", async () => {
  steps = [reset, reset];
  const failed = instant({ attempts: 2 }).fetch(`${origin}/files?token=secret`, {
    headers: { "x-request-id": "r7" },
  });

  const error = await failed.catch((error: unknown) => error);

  expect(error).toBeInstanceOf(TypeError);
  expect(error).toBeInstanceOf(FetchFailedError);
  expect(error).toMatchObject({
    name: "FetchFailedError",
    message: `GET ${origin}/files got no answer in 2 attempts (X-Request-ID r7)`,
    requestId: "r7",
    attempts: 2,
    cause: expect.any(TypeError),
  });
});

test("gives up an attempt without a response in time, and retries", async () => {
  steps = [hanging];

  expect((await instant({ attemptMs: 50 }).fetch(origin, post)).status).toBe(200);
  expect(keys().size).toBe(1);
});

test("does not time out a slow body once the response has begun", async () => {
  const { fetch } = instant({ attemptMs: 1_000 }); // the head may take its time on a busy machine
  let finish = () => {};
  steps = [
    (response) => {
      response.writeHead(200).write("first ");
      finish = () => response.end("second");
    },
  ];

  const response = await fetch(origin);
  await wait(1_500, new AbortController().signal); // longer than an attempt
  finish();

  expect(await response.text()).toBe("first second");
});

test("fails with a TimeoutError as the cause when no response comes in time", async () => {
  steps = [hanging];
  const failed = instant({ attempts: 1, attemptMs: 20 }).fetch(origin);

  await expect(failed).rejects.toMatchObject({
    message: expect.stringContaining("got no answer in 1 attempt ("),
    cause: { name: "TimeoutError", message: "no answer within 20 ms" },
  });
});

test("sends nothing when the signal is already aborted", async () => {
  const failed = instant().fetch(origin, { ...post, signal: AbortSignal.abort(new Error("gone")) });

  await expect(failed).rejects.toThrow("gone");
  expect(arrived).toEqual([]);
});

test("aborting ends the current attempt, and there is no further one", async () => {
  const leaving = new AbortController();
  steps = [() => leaving.abort(new Error("the user left"))];

  await expect(instant().fetch(origin, { ...post, signal: leaving.signal })).rejects.toThrow(
    "the user left",
  );
  expect(arrived).toHaveLength(1);
});

test("aborting ends a pause at once", async () => {
  const leaving = new AbortController();
  steps = [failing(503, "overloaded", { "retry-after": "50" })];
  const fetch = retryingFetch({ onRetry: () => setImmediate(() => leaving.abort()) });
  const beganMs = Date.now();

  await expect(fetch(origin, { ...post, signal: leaving.signal })).rejects.toMatchObject({
    name: "AbortError",
  });
  expect(Date.now() - beganMs).toBeLessThan(10_000);
  expect(arrived).toHaveLength(1);
});

test("aborting in onRetry ends the call without a pause or another attempt", async () => {
  const leaving = new AbortController();
  steps = [failing(503, "overloaded", { "retry-after": "30" })];
  const fetch = retryingFetch({ onRetry: () => leaving.abort(new Error("the user left")) });
  await expect(fetch(origin, { ...post, signal: leaving.signal })).rejects.toThrow("the user left");
  expect(arrived).toHaveLength(1);
});

test("aborting ends a body that is being read", async () => {
  const leaving = new AbortController();
  steps = [(response) => response.writeHead(200).write("first")];

  const response = await instant().fetch(origin, { signal: leaving.signal });
  leaving.abort();

  await expect(response.text()).rejects.toMatchObject({ name: "AbortError" });
});

test("sends a stream once, since it cannot be read again", async () => {
  steps = [failing(503, "overloaded")];
  const streams = [
    () => new Blob(["abc"]).stream(),
    () => Readable.from(["abc"]) as unknown as ReadableStream, // safe: Node's fetch takes what can be iterated
  ];
  for (const stream of streams) {
    arrived.length = 0;
    steps = [failing(503, "overloaded")];

    const response = await instant().fetch(origin, {
      method: "POST",
      body: stream(),
      duplex: "half",
    } as RequestInit);

    expect(response.status).toBe(503);
    expect(arrived.map(({ body }) => body)).toEqual(["abc"]);
  }
});

test.each([
  ["a form", () => form({ name: "a.txt" }), /^multipart\/form-data; boundary=/],
  [
    "parameters",
    () => new URLSearchParams({ name: "a.txt" }),
    /^application\/x-www-form-urlencoded/,
  ],
  ["bytes", () => new TextEncoder().encode("a.txt"), /^undefined$/],
  ["a blob", () => new Blob(["a.txt"], { type: "text/plain" }), /^text\/plain$/],
])("resends %s unchanged", async (_kind, body, type) => {
  steps = [reset, reset];

  await instant().fetch(origin, { method: "POST", body: body() });

  expect(arrived).toHaveLength(3);
  expect(arrived[0]?.body).toContain("a.txt");
  expect(new Set(arrived.map(({ body }) => body)).size).toBe(1);
  expect(new Set(arrived.map(({ headers }) => String(headers["content-type"]))).size).toBe(1);
  expect(String(arrived[0]?.headers["content-type"])).toMatch(type);
});

function form(fields: Readonly<Record<string, string>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  return data;
}

test("resends a Request with its body", async () => {
  steps = [reset, failing(503, "overloaded")];
  const request = new Request(origin, post);

  await instant().fetch(request);

  expect(arrived.map(({ body }) => body)).toEqual(Array(3).fill('{"name":"a.txt"}'));
  expect(request.bodyUsed).toBe(true); // as after any fetch
});

test("sends an unknown method once, unless the caller gives it a key", async () => {
  steps = [failing(503, "overloaded"), failing(503, "overloaded")];
  const { fetch } = instant();

  expect((await fetch(origin, { method: "PURGE" })).status).toBe(503);
  expect(
    (await fetch(origin, { method: "PURGE", headers: { "idempotency-key": "k1" } })).status,
  ).toBe(200);
});

test("does not retry a call that fetch rejects at once", async () => {
  const { fetch, retries } = instant();

  await expect(fetch("no url")).rejects.toMatchObject({ name: "TypeError" });
  expect(retries).toEqual([]);
});

test("a custom fetch gets the options that a Request does not keep, and its errors reach the caller", async () => {
  const send = vi.fn<typeof globalThis.fetch>().mockRejectedValue(new RangeError("of its own"));
  const init = { referrerPolicy: "no-referrer", next: { revalidate: 60 } } as RequestInit; // as one framework takes it

  await expect(instant({ fetch: send }).fetch(origin, init)).rejects.toThrow(RangeError);
  expect(send).toHaveBeenCalledOnce();
  expect(send.mock.calls[0]?.[1]).toMatchObject({ ...init, referrer: "about:client" });
});

test("passes on members that a client has added to its Request", async () => {
  const send = vi.fn<typeof globalThis.fetch>(async () => new Response());

  await instant({ fetch: send }).fetch(
    Object.assign(new Request(origin), { next: { revalidate: 60 } }),
  );

  expect(send.mock.calls[0]?.[1]).toMatchObject({ next: { revalidate: 60 } });
});

test("reports each retry with its reason", async () => {
  steps = [reset, gateway(502), failing(503, "overloaded", { "retry-after": "2" })];
  const { fetch, retries } = instant();

  await fetch(origin, { headers: { "x-request-id": "r9" } });

  expect(retries).toEqual([
    { attempt: 1, waitMs: 250, requestId: "r9", error: expect.any(TypeError) },
    { attempt: 2, waitMs: 500, requestId: "r9", status: 502 },
    { attempt: 3, waitMs: 3_000, requestId: "r9", status: 503, code: "overloaded" },
  ]);
});

test("without options, makes five attempts with random pauses", async () => {
  const random = vi.spyOn(Math, "random").mockReturnValue(0.01);
  onTestFinished(() => random.mockRestore());
  steps = Array(5).fill(reset);

  await expect(retryingFetch()(origin)).rejects.toMatchObject({ attempts: 5 });
  expect(arrived).toHaveLength(5);
});

test("makes one attempt when attempts is not a number", async () => {
  steps = [answer(503, {}), answer(503, {})];
  const response = await retryingFetch({ attempts: Number("three") })(origin);
  expect([response.status, arrived.length]).toEqual([503, 1]);
});

test("a call without limits waits for its response, and no timer fires immediately", async () => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => void timers.mockRestore());
  const fetch = retryingFetch({
    attemptMs: Number.POSITIVE_INFINITY,
    totalMs: Number.POSITIVE_INFINITY,
    fetch: async () => new Response(),
  });
  expect((await fetch("http://files.example/")).ok).toBe(true);
  const ended = new AbortController();
  const pause = wait(Number.POSITIVE_INFINITY, ended.signal);
  ended.abort();
  await expect(pause).rejects.toBe(ended.signal.reason);
  expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([2_147_483_647, 2_147_483_647]);
});
