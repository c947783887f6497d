// A function that streams, in Lambda's own runtime for Node.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { lambdaEvent } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FunctionEnvironment, type Invoked } from "../support/runtime-api.ts";

const root = join(import.meta.dirname, "../..");
let environment: FunctionEnvironment;

beforeAll(async () => {
  // Safe: it is declared in scripts/package-emulator.mjs, which has no types.
  const { installRuntime } = (await import(
    pathToFileURL(join(root, "scripts/package-emulator.mjs")).href
  )) as { installRuntime(say: (line: string) => void): { readonly runtime: string } };
  const { runtime } = installRuntime(console.log);
  const folder = join(root, "test/fixtures");
  environment = await FunctionEnvironment.start({
    runtime,
    folder,
    handler: "streamed-function.http",
  });
});

afterAll(() => environment?.stop());

const invoke = (
  front: "functionUrl" | "restApi" | "httpApi",
  path: string,
  method = "GET",
): Promise<Invoked> => environment.invoke(lambdaEvent(front, { path, method }));

describe("in Lambda's own runtime,", () => {
  test("chunks arrive one by one, with status, headers and all cookies", async () => {
    const {
      headers,
      prelude,
      text: body,
      chunksMs,
      isWhole,
    } = await invoke("functionUrl", "/chunks/2000");
    expect(headers).toMatchObject({
      "content-type": "application/vnd.awslambda.http-integration-response",
      "lambda-runtime-function-response-mode": "streaming",
    });
    expect(prelude).toMatchObject({
      statusCode: 200,
      headers: { "content-type": "text/plain", "x-request-id": expect.any(String) },
      cookies: [expect.stringContaining("a=1"), expect.stringContaining("b=2")],
    });
    expect([body, isWhole]).toEqual(["one two three", true]);
    // A busy machine reads chunks late, and perhaps two together.
    expect((chunksMs.at(-1) ?? 0) - (chunksMs[0] ?? 0)).toBeGreaterThan(400);
  });

  test("a REST API has its cookies in multiValueHeaders", async () => {
    const { prelude } = await invoke("restApi", "/chunks/1");
    expect(prelude).toMatchObject({
      multiValueHeaders: { "set-cookie": [/a=1/, /b=2/].map((re) => expect.stringMatching(re)) },
    });
  });

  test.each([
    ["/none", "GET", 204],
    ["/chunks/1", "HEAD", 200],
  ])("a response without a body has its prelude: %s %s", async (path, method, statusCode) => {
    const { prelude, body, isWhole } = await invoke("functionUrl", path, method);
    expect(prelude).toMatchObject({ statusCode });
    expect([body.byteLength, isWhole]).toEqual([0, true]);
  });

  test("10 MB pass, without base64", async () => {
    const { body, isWhole } = await invoke("functionUrl", "/huge");
    expect([body.byteLength, isWhole]).toEqual([10 * 1_048_576, true]);
  });

  // The runtime ends its process over the broken connection, and Lambda starts it again.
  test("a response that breaks off is not whole, and the next invocation works", async () => {
    const { prelude, text: body, isWhole } = await invoke("functionUrl", "/broken");
    expect([prelude["statusCode"], body, isWhole]).toEqual([200, "first", false]);
    await expect.poll(() => environment.text).toContain("response.cut_off");
    expect((await invoke("functionUrl", "/none")).prelude).toMatchObject({ statusCode: 204 });
  });

  test("an HTTP API gets a whole result", async () => {
    const { prelude, text: body, isWhole } = await invoke("httpApi", "/chunks/1");
    expect([prelude, isWhole]).toEqual([{}, true]);
    const { statusCode, body: bytes, isBase64Encoded } = JSON.parse(body);
    expect([statusCode, isBase64Encoded]).toEqual([200, true]);
    expect(Buffer.from(bytes, "base64").toString()).toBe("one two three");
  });

  test("eventsource-parser reads the events", async () => {
    const { text: body } = await invoke("functionUrl", "/events");
    const events: EventSourceMessage[] = [];
    createParser({ onEvent: (event) => void events.push(event) }).feed(body);
    expect(events.map(({ id, data }) => [id, JSON.parse(data)])).toEqual(
      [1, 2, 3].map((n) => [`${n}`, { n }]),
    );
  });
});
