// The largest body of one handler, on both hosts.
import { expect, onTestFinished, test } from "vitest";
import { unplaced } from "../../../test/support/unplaced.ts";
import { BootError } from "../../base/errors/boot.ts";
import { access } from "../../base/identity/access.ts";
import { lambdaHttp } from "../../hosts/lambda/index.ts";
import type { BodyLimits } from "../../parts/http/limits.ts";
import { startTestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

const everyone = { access: access.everyone, body: "bytes" } as const;
const size = async (_ctx: unknown, input: unknown) => ({
  bytes: (Object(input).body as Uint8Array | undefined)?.byteLength ?? 0,
});

const uploads = defineFeature("uploads", (r) => {
  r.write("file.large", {
    route: "POST /large",
    ...everyone,
    limits: { bodyBytes: 300 },
    handler: size,
  });
  r.write("file.small", {
    route: "POST /small",
    ...everyone,
    limits: { bodyBytes: 10 },
    handler: size,
  });
  r.write("file.none", {
    route: "POST /none",
    ...everyone,
    limits: { bodyBytes: 0 },
    handler: size,
  });
  r.write("file.usual", { route: "POST /usual", ...everyone, limits: {}, handler: size });
  r.write("file.guarded", {
    route: "POST /guarded",
    access: access.authenticated,
    limits: { bodyBytes: 10 },
    handler: size,
  });
  r.webhook("file.sent", {
    route: "POST /sent",
    limits: { bodyBytes: 300 },
    verify: () => true,
    tenant: () => "acme",
    handler: async () => ({ sent: true }),
  });
});
const serverOf = () => buildServer({ features: [uploads], limits: { bodyBytes: 100 } });

async function started() {
  const app = await startTestApp(serverOf());
  onTestFinished(() => app.close());
  return app;
}

/** Statuses by path and length of the body, in bytes. */
const expected: readonly (readonly [path: string, bytes: number, status: number])[] = [
  ["/large", 300, 200],
  ["/large", 301, 413],
  ["/small", 10, 200],
  ["/small", 11, 413],
  ["/none", 0, 200],
  ["/none", 1, 413],
  ["/usual", 100, 200],
  ["/usual", 101, 413],
];

test("a handler's limit replaces the server's, above or below it, in a container", async () => {
  const app = await started();
  for (const [path, bytes, status] of expected) {
    const body = new Uint8Array(bytes);
    const { status: got } = await app.fetch(path, { method: "POST", body });
    expect([path, bytes, got]).toEqual([path, bytes, status]);
  }
});

test("a handler's limit replaces the server's in a Lambda function, for text and base64", async () => {
  const http = lambdaHttp(serverOf());
  const invoke = async (path: string, body: string, isBase64Encoded: boolean) => {
    const event = {
      version: "2.0",
      rawPath: path,
      rawQueryString: "",
      headers: { host: "x" },
      requestContext: { http: { method: "POST", path, sourceIp: "192.0.2.1" }, stage: "$default" },
      body,
      isBase64Encoded,
    };
    return (await http(event as never, {} as never)).statusCode;
  };
  for (const [path, bytes, status] of expected) {
    expect([path, bytes, await invoke(path, "x".repeat(bytes), false)]).toEqual([
      path,
      bytes,
      status,
    ]);
    const encoded = Buffer.alloc(bytes).toString("base64");
    expect([path, bytes, await invoke(path, encoded, true)]).toEqual([path, bytes, status]);
  }
});

test("a webhook has its own limit too", async () => {
  const app = await started();
  const send = async (length: number) => {
    const body = JSON.stringify({ text: "x".repeat(length - 11) });
    const headers = { "content-type": "application/json" };
    return (await app.fetch("/sent", { method: "POST", body, headers })).status;
  };
  expect([await send(300), await send(301)]).toEqual([200, 413]);
});

test("a declared length above the handler's limit is refused before the caller is known", async () => {
  const app = await started();
  const send = async (bytes: number) =>
    (await app.fetch("/guarded", { method: "POST", body: "x".repeat(bytes) })).status;
  expect([await send(11), await send(10)]).toEqual([413, 401]);
});

function problemsOf(own: BodyLimits | undefined, route = "POST /a") {
  const shelf = defineFeature("shelf", (r) =>
    r.write("file.add", {
      ...(route === "" ? {} : { route, access: access.everyone }),
      ...(own !== undefined && { limits: own }),
      handler: async () => 1,
    } as never),
  );
  try {
    buildServer({ features: [shelf] });
    return [];
  } catch (error) {
    if (error instanceof BootError) return unplaced(error.problems);
    throw error;
  }
}

test("refuses wrong numbers of bytes, unknown limits, and limits without a route", () => {
  expect(problemsOf({ bodyBytes: 1 })).toEqual([]);
  for (const bodyBytes of [-1, 1.5, "1" as never, null as never]) {
    expect(problemsOf({ bodyBytes })).toMatchObject([
      { key: "shelf.file.add.limits.bodyBytes", rule: "option-type", feature: "shelf" },
    ]);
  }
  expect(problemsOf({ bufferedBytes: 1 } as never)).toMatchObject([
    { key: "shelf.file.add.limits.bufferedBytes", rule: "unknown-option" },
  ]);
  expect(problemsOf(7 as never)).toMatchObject([{ key: "shelf.file.add.limits" }]);
  expect(problemsOf({ bodyBytes: 1 }, "")).toMatchObject([
    { key: "shelf.file.add", rule: "limits-without-route" },
  ]);
});
