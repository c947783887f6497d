import { once } from "node:events";
import { request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { json, text } from "node:stream/consumers";
import { crc32 } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { type AwsJsonService, type CallContext, ServiceError } from "../service/service.ts";
import { createFrontServer } from "./front-server.ts";

let server: Server;
let port: number;
const faults: unknown[] = [];
let context: CallContext | undefined;
const echo: AwsJsonService = {
  targetPrefix: "Echo_1.",
  async call(operation, input, from) {
    context = from;
    if (operation === "Wait" && from) await once(from.signal, "abort");
    if (operation === "Fault") throw new TypeError("secret detail");
    if (operation === "Refuse")
      throw new ServiceError("echo#Refused", "no", {
        members: { Item: { a: 1 } },
        headers: { "x-why": "no" },
      });
    return { operation, input };
  },
};
const other: AwsJsonService = { targetPrefix: "Other.", call: async () => ({ other: true }) };

beforeEach(async () => {
  faults.length = 0;
  server = createFrontServer([echo, other], (fault) => faults.push(fault)).listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port; // it listens on TCP, so its address is one
});
afterEach(() => server.close());

async function post(
  target: string | undefined,
  body: string,
  headers: Record<string, string> = {},
) {
  const response = await fetch(`http://127.0.0.1:${port}/`, {
    method: "POST",
    body,
    headers: { ...(target === undefined ? {} : { "x-amz-target": target }), ...headers },
  });
  const answer = await response.text();
  expect(response.headers.get("x-amz-crc32")).toBe(String(crc32(answer)));
  const why = response.headers.get("x-why");
  return {
    status: response.status,
    body: JSON.parse(answer),
    type: response.headers.get("content-type"),
    ...(why === null ? {} : { why }),
  };
}

test("passes a request to the service that its target names", async () => {
  const input = { Text: "ä\u0000", List: [1] };
  expect(await post("Echo_1.Say", JSON.stringify(input))).toEqual({
    status: 200,
    body: { operation: "Say", input },
    type: "application/x-amz-json-1.0",
  });
  const versioned = await post("Other.Any", "{}", { "content-type": "application/x-amz-json-1.1" });
  expect(versioned).toEqual({
    status: 200,
    body: { other: true },
    type: "application/x-amz-json-1.1",
  });
});

test("a refusal has its type, message, members and headers", async () => {
  expect(await post("Echo_1.Refuse", "{}")).toMatchObject({
    status: 400,
    body: { __type: "echo#Refused", message: "no", Item: { a: 1 } },
    why: "no",
  });
});

test("reports a fault to the server only, without its details in the response", async () => {
  const { status, body } = await post("Echo_1.Fault", "{}");
  expect(status).toBe(500);
  expect(body.__type).toBe("com.amazon.coral.service#InternalServerError");
  expect(JSON.stringify(body)).not.toContain("secret detail");
  expect(faults).toEqual([new TypeError("secret detail")]);
});

test.each(["Nobody.Say", "Echo_2.Say", undefined])(
  "answers the target %s with an unknown operation error",
  async (target) => {
    const { status, body } = await post(target, "{}");
    expect([status, body.__type]).toEqual([
      400,
      "com.amazon.coral.service#UnknownOperationException",
    ]);
  },
);

test.each(["", "{", "null", "[]", '"text"', "7"])(
  "answers the body %j with a serialization error",
  async (sent) => {
    const { status, body } = await post("Echo_1.Say", sent);
    expect([status, body.__type]).toEqual([400, "com.amazon.coral.service#SerializationException"]);
  },
);

test("refuses a body above the limit before reading all of it", async () => {
  const sending = request({ port, method: "POST", headers: { "x-amz-target": "Echo_1.Say" } });
  sending.on("error", () => {}); // the server hangs up on what is left
  const answered = once(sending, "response");
  for (let megabyte = 0; megabyte < 18; megabyte += 1)
    sending.write(Buffer.alloc(1024 * 1024, "x"));
  const [response] = await answered;
  expect(response.statusCode).toBe(413);
  expect(response.headers.connection).toBe("close");
  expect(await json(response)).toMatchObject({ __type: "RequestEntityTooLargeException" });
  sending.destroy();
});

test("refuses a request whose Host is another site, and accepts local names", async () => {
  for (const [host, status] of [
    ["evil.example", 403],
    ["localhost.evil.example", 403],
    ["LOCALHOST:8000", 200],
    ["bucket.localhost:1", 200],
    ["127.0.0.1", 200],
  ] as const) {
    const asking = request({ port, headers: { host } }).end();
    const [response] = await once(asking, "response");
    response.resume();
    expect([host, response.statusCode]).toEqual([host, status]);
  }
});

test("refuses a request without a Host", async () => {
  const socket = connect(port, "127.0.0.1");
  socket.write("GET / HTTP/1.0\r\n\r\n");
  expect(await text(socket)).toContain("403 Forbidden");
});

test("answers GET with its health, and other methods with 404", async () => {
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).json()).toEqual({ status: "healthy" });
  const preflight = await fetch(`http://127.0.0.1:${port}/`, {
    method: "OPTIONS",
    headers: { origin: "http://a.example" },
  });
  expect(preflight.status).toBe(404);
  expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
});

test("a client that hangs up while sending its body does no harm", async () => {
  const sending = request({
    port,
    method: "POST",
    headers: { "x-amz-target": "Echo_1.Say", "content-length": "100" },
  });
  sending.on("error", () => {});
  sending.write("{");
  const [received] = await once(server, "request");
  const hungUp = once(received, "close");
  sending.destroy();
  await hungUp.catch(() => {}); // closing comes with an error, whose handling is what is tested
  expect((await post("Echo_1.Say", "{}")).status).toBe(200);
  expect(faults).toEqual([]);
});

test("tells a service the address that the client used", async () => {
  await post("Echo_1.Say", "{}");
  expect(context?.endpoint).toBe(`http://127.0.0.1:${port}`);
});

test.each([
  ["60000", 60_000],
  ["1000000000000", 10 ** 12],
  ["0", 0],
  ["1000000000001", 0],
  ["-5", 0],
  ["1.5", 0],
  ["1e3", 0],
  ["", 0],
])("a clock offset of %j moves the time of the call by %d ms", async (offset, moved) => {
  const before = Date.now();
  await post("Echo_1.Say", "{}", { "x-keelson-clock-offset": offset });
  expect(context?.nowMs).toBeGreaterThanOrEqual(before + moved);
  expect(context?.nowMs).toBeLessThanOrEqual(Date.now() + moved);
});

test("tells a waiting service that its client has hung up", async () => {
  const asking = request({ port, method: "POST", headers: { "x-amz-target": "Echo_1.Wait" } });
  asking.on("error", () => {});
  asking.end("{}");
  context = undefined;
  await waitFor(() => expect(context).toBeDefined());
  asking.destroy();
  await waitFor(() => expect(context?.signal.aborted).toBe(true));
  expect((await post("Echo_1.Say", "{}")).status).toBe(200);
  expect(faults).toEqual([]);
});
