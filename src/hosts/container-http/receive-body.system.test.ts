import { once } from "node:events";
import { afterEach, describe, expect, test } from "vitest";
import {
  type Bounded,
  closeAll,
  frame,
  http2Client,
  preface,
  type RawClient,
  rawClient,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";
import type { HttpServerOptions } from "./http-options.ts";
import { createByteBudget } from "./receive-body.ts";

afterEach(closeAll);

const limits = { bodyBytes: 100_000, bufferedBytes: 1_000_000 };
const upload = (path: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${limits.bodyBytes}\r\n\r\n`;
const body = Buffer.alloc(limits.bodyBytes, 1);

/** How much of the budget was held at the most. */
function followMost({ bodies }: Bounded) {
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, bodies.heldBytes);
  }, 1);
  return () => {
    clearInterval(timer);
    return most;
  };
}

test("grants bytes while any are left, and releases them once", () => {
  const budget = createByteBudget(10);
  const [one, two] = [budget.hold(), budget.hold()];
  expect([one.take(6), two.take(4), two.take(1)]).toEqual([true, true, false]);
  one.release();
  one.release();
  expect([budget.heldBytes, two.take(6), budget.heldBytes]).toEqual([4, true, 10]);
});

test("600 concurrent uploads never hold more than the budget; the rest get 503, and all bytes are released", async () => {
  const bounded = await serveBounded({}, limits);
  const { port, bodies, probe } = bounded;
  const most = followMost(bounded);
  const clients = await Promise.all(
    Array.from({ length: 600 }, () => rawClient(port, upload("/held"))),
  );
  for (const { socket } of clients) socket.write(body);
  const refused = () => clients.filter(({ got }) => got().startsWith("HTTP/1.1 503 "));
  await expect.poll(() => refused().length + probe.began).toBe(600);

  expect(most()).toBeLessThanOrEqual(limits.bufferedBytes);
  expect(probe.began).toBeLessThanOrEqual(10);
  // A refusal may arrive before what was held for it is released.
  await expect.poll(() => bodies.heldBytes).toBe(probe.began * limits.bodyBytes);
  for (const { got } of refused()) {
    expect(got()).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n[\s\S]*"error":"overloaded"/i);
  }
  probe.letGo();
  await expect.poll(() => bodies.heldBytes).toBe(0);
  const after = await rawClient(port, Buffer.concat([Buffer.from(upload("/size")), body]));
  await expect.poll(after.got).toContain(`"bytes":${limits.bodyBytes}`);
});

test("over HTTP/2, uploads never hold more than the budget either", async () => {
  const bounded = await serveBounded({ tls }, limits);
  const { port, bodies, probe } = bounded;
  const most = followMost(bounded);
  const sessions = await Promise.all(Array.from({ length: 6 }, () => http2Client(port)));
  const answers = sessions.flatMap((session) =>
    Array.from({ length: 100 }, async () => {
      const stream = session.request({ ":method": "POST", ":path": "/held" });
      stream.end(body);
      const [headers] = await once(stream, "response");
      stream.resume();
      return [headers[":status"], headers["retry-after"]];
    }),
  );
  let refused = 0;
  for (const answer of answers) void answer.then(([status]) => (refused += Number(status === 503)));
  await expect.poll(() => refused + probe.began).toBe(600);
  expect(most()).toBeLessThanOrEqual(limits.bufferedBytes);
  probe.letGo();

  const statuses = await Promise.all(answers);
  expect(statuses.filter(([status]) => status === 503)).toEqual(Array(refused).fill([503, "1"]));
  expect(statuses.filter(([status]) => status === 200 || status === 204)).toHaveLength(
    600 - refused,
  );
  await expect.poll(() => bodies.heldBytes).toBe(0);
});

test("receives a body sent in the smallest pieces whole", async () => {
  const { port, bodies } = await serveBounded({}, limits);
  const bytes = Array.from({ length: 30_000 }, (_, index) => index % 7);
  const pieces = bytes.map((byte) => Buffer.from([0x31, 13, 10, byte, 13, 10]));
  const large = Buffer.concat([
    Buffer.from("2710\r\n"),
    Buffer.alloc(10_000, 3),
    Buffer.from("\r\n"),
  ]); // among them
  const head =
    "POST /size HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\ntransfer-encoding: chunked\r\n\r\n";
  const half = pieces.length / 2;
  const parts = [
    Buffer.from(head),
    ...pieces.slice(0, half),
    large,
    ...pieces.slice(half),
    Buffer.from("0\r\n\r\n"),
  ];
  const client = await rawClient(port, Buffer.concat(parts));
  const sum = bytes.reduce((all, byte) => all + byte, 30_000);

  await expect.poll(client.got).toContain(`{"bytes":40000,"sum":${sum}}`);
  await expect.poll(() => bodies.heldBytes).toBe(0);
});

describe.each([
  ["HTTP/1.1", {}],
  ["HTTP/2", { tls }],
] as const)("over %s, no bytes stay held", (protocol, options) => {
  /** Sends the beginning of an upload: `sent` bytes of `bytes`. */
  async function begin(
    { port }: Bounded,
    path: string,
    sent: number,
    bytes = limits.bodyBytes,
  ): Promise<RawClient> {
    const part = body.subarray(0, sent);
    if (protocol === "HTTP/1.1") {
      const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${sent.toString(16)}\r\n`;
      return rawClient(
        port,
        Buffer.concat([
          Buffer.from(head),
          part,
          Buffer.from(sent === bytes ? "\r\n0\r\n\r\n" : "\r\n"),
        ]),
      );
    }
    // POST, https, the path, the host x; flags: END_HEADERS, and END_STREAM with the last byte.
    const head = Buffer.concat([
      Buffer.from([0x83, 0x87, 0x04, path.length]),
      Buffer.from(path),
      Buffer.from([0x41, 1, 0x78]),
    ]);
    const data = Array.from({ length: Math.ceil(sent / 16_384) }, (_, index) => {
      const piece = part.subarray(index * 16_384, (index + 1) * 16_384);
      return frame(0, sent === bytes && (index + 1) * 16_384 >= sent ? 1 : 0, 1, piece);
    });
    return rawClient(port, Buffer.concat([preface(), frame(1, 4, 1, head), ...data]), "h2");
  }
  const served = (bodyBytes = limits.bodyBytes, times: HttpServerOptions = {}) =>
    serveBounded({ ...options, ...times }, { ...limits, bodyBytes });
  const holds = ({ bodies }: Bounded, bytes: number) =>
    expect.poll(() => bodies.heldBytes).toBe(bytes);

  test("by a request that was answered, or whose handler threw", async () => {
    const bounded = await served();
    const answered = await begin(bounded, "/size", 50_000, 50_000);
    const failed = await begin(bounded, "/failing", 50_000, 50_000);
    await expect.poll(answered.got).toContain('"bytes":50000');
    await expect.poll(failed.got).toContain("internal_error");
    await holds(bounded, 0);
  });

  test("by a client that leaves amid its body, or sends it too late", async () => {
    const bounded = await served();
    const client = await begin(bounded, "/size", 30_000);
    await holds(bounded, 30_000);
    client.socket.destroy();
    await holds(bounded, 0);
    const hasty = await served(undefined, { requestTimeoutMs: 4_000, headersTimeoutMs: 4_000 });
    const late = await begin(hasty, "/size", 30_000);
    await expect.poll(late.got).toContain("took too long");
    await holds(hasty, 0);
    late.socket.write(body); // nor of what comes later
    await holds(hasty, 0);
  });

  test("by a body over the limit", async () => {
    const bounded = await served(20_000);
    const client = await begin(bounded, "/size", 30_000);
    await expect.poll(client.got).toContain("payload_too_large");
    await holds(bounded, 0);
  });

  test("by a client that leaves while its handler runs, once the handler has ended", async () => {
    const bounded = await served();
    const client = await begin(bounded, "/held", 50_000, 50_000);
    await expect.poll(() => bounded.probe.began).toBe(1);
    client.socket.destroy();
    await expect.poll(() => bounded.connections.known.size).toBe(0);
    expect(bounded.bodies.heldBytes).toBe(50_000);
    bounded.probe.letGo();
    await holds(bounded, 0);
  });
});
