import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import type { ParameterReader } from "../../app/runtime/adapters.ts";
import { openParameters } from "./ssm.ts";

const opened: (Server | ParameterReader)[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const one of opened.splice(0)) {
    if ("closeAllConnections" in one) one.closeAllConnections();
    one.close();
  }
});

async function reader(
  answer: (response: ServerResponse, call: number) => void,
  times: { attemptMs?: number; totalMs?: number } = {},
) {
  let calls = 0;
  const server = createServer((request, response) => {
    calls += 1;
    request.resume().once("end", () => answer(response, calls));
  }).listen(0, "127.0.0.1");
  opened.push(server);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
  const parameters = await openParameters({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
    ...times,
  });
  opened.push(parameters);
  return {
    read: () => parameters.read("/app"),
    get: () => parameters.get("/ring"),
    calls: () => calls,
  };
}

const say = (response: ServerResponse, status: number, body: object | string) =>
  response
    .writeHead(status, { "content-type": "application/x-amz-json-1.1" })
    .end(typeof body === "string" ? body : JSON.stringify(body));

test("reads and decrypts every page, and recognizes a SecureString", async () => {
  const parameters = await reader((response, call) =>
    say(
      response,
      200,
      call === 1
        ? { Parameters: [{ Name: "/app/a/b", Value: "1", Type: "String" }], NextToken: "more" }
        : call === 2
          ? { NextToken: "still" }
          : { Parameters: [{ Name: "/app/a/c", Value: "2", Type: "SecureString" }] },
    ),
  );
  expect(await parameters.read()).toEqual([
    { name: "/app/a/b", value: "1", secure: false },
    { name: "/app/a/c", value: "2", secure: true },
  ]);
});

test("retries throttling five times, and names it if it lasts", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0); // no pauses between attempts
  const passing = await reader((response, call) =>
    call <= 5
      ? say(response, 400, { __type: "ThrottlingException" })
      : say(response, 200, { Parameters: [] }),
  );
  expect(await passing.read()).toEqual([]);
  const lasting = await reader((response) =>
    say(response, 400, { __type: "ThrottlingException", message: "Rate exceeded" }),
  );
  await expect(lasting.read()).rejects.toThrow(
    "SSM parameters below /app cannot be read: ThrottlingException after the SDK's retries",
  );
  expect(lasting.calls()).toBe(6);
});

test("names the error when SSM fails, answers garbage, or returns a parameter without a value", async () => {
  for (const [status, body] of [
    [500, { __type: "InternalServerError" }],
    [400, { __type: "AccessDeniedException" }],
    [200, "<html>"],
    [200, { Parameters: [{ Name: "/app/a/b" }] }],
    [200, { Parameters: [{ Value: "v" }] }],
  ] as const) {
    vi.spyOn(Math, "random").mockReturnValue(0); // no pauses between attempts
    const parameters = await reader((response) => say(response, status, body));
    await expect(parameters.read()).rejects.toThrow("SSM parameters below /app cannot be read: ");
  }
});

test("lets the SDK take from the environment what is not given", async () => {
  const server = createServer((request, response) => {
    request
      .resume()
      .once("end", () => say(response, 200, { Parameters: [{ Name: "/app/a/b", Value: "1" }] }));
  }).listen(0, "127.0.0.1");
  opened.push(server);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", `http://127.0.0.1:${port}`);
  for (const name of ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    vi.stubEnv(name, "us-east-1");
  const parameters = await openParameters({});
  opened.push(parameters);
  expect(await parameters.read("/app")).toEqual([{ name: "/app/a/b", value: "1", secure: false }]);
  vi.unstubAllEnvs();
});

test("gives up in time on an SSM that never answers or whose pages never end", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0); // no pauses between attempts
  const silent = await reader(() => {}, { attemptMs: 50, totalMs: 60_000 });
  await expect(silent.read()).rejects.toThrow("TimeoutError after the SDK's retries");
  const hanging = await reader(() => {}, { attemptMs: 60_000, totalMs: 100 });
  await expect(hanging.read()).rejects.toThrow("no complete answer within 100 ms");
  const endless = await reader(
    (response, call) => say(response, 200, { Parameters: [], NextToken: String(call) }),
    {
      totalMs: 200,
    },
  );
  await expect(endless.read()).rejects.toThrow("no complete answer within 200 ms");
});

test("a pause of the SDK between attempts does not extend the timeout", async () => {
  vi.spyOn(Math, "random").mockReturnValue(60); // 20 s, the longest pause
  const throttled = (response: ServerResponse) =>
    say(response, 400, { __type: "ThrottlingException" });
  const parameters = await reader(throttled, { totalMs: 200 });
  await expect(parameters.read()).rejects.toThrow("no complete answer within 200 ms");
  await expect(parameters.get()).rejects.toThrow("no complete answer within 200 ms");
  expect(parameters.calls()).toBe(2);
});

test("reads one parameter by name, returns undefined if it is missing, and names a failure", async () => {
  const found = await reader((response) =>
    say(response, 200, { Parameter: { Name: "/ring", Value: "1", Type: "SecureString" } }),
  );
  expect(await found.get()).toEqual({ name: "/ring", value: "1", secure: true });
  const odd = await reader((response) => say(response, 200, {}));
  expect(await odd.get()).toBeUndefined();
  const missing = await reader((response) => say(response, 400, { __type: "ParameterNotFound" }));
  expect(await missing.get()).toBeUndefined();
  const denied = await reader((response) =>
    say(response, 400, { __type: "AccessDeniedException" }),
  );
  await expect(denied.get()).rejects.toThrow(
    "The SSM parameter /ring cannot be read: AccessDeniedException after the SDK's retries",
  );
  const silent = await reader(() => {}, { attemptMs: 100_000, totalMs: 50 });
  await expect(silent.get()).rejects.toThrow("no complete answer within 50 ms");
});
