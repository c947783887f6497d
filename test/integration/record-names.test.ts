import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createServerLogger } from "../../src/base/log/server-logger.ts";
import { createClientLogger } from "../../src/clients/browser/client-logger.ts";

type Fields = Record<string, unknown>;

/** What a child's context and the data of a call become, on the server and in the browser. */
const table: readonly [what: string, context: Fields, data: Fields, record: Fields][] = [
  ["names that are free", { view: 1 }, { item: 2 }, { view: 1, item: 2 }],
  [
    "data named as what is fixed",
    {},
    { level: 1, msg: 2, time: 3 },
    { data_level: 1, data_msg: 2, data_time: 3 },
  ],
  [
    "context named as what is fixed",
    { level: 1, msg: 2, time: 3 },
    {},
    { context_level: 1, context_msg: 2, context_time: 3 },
  ],
  [
    "data named as a field of the context",
    { requestId: "r" },
    { requestId: "d" },
    { requestId: "r", data_requestId: "d" },
  ],
  [
    "data whose other name is taken by data",
    { a: 1 },
    { a: 2, data_a: 3 },
    { a: 1, data_a: 3, data_data_a: 2 },
  ],
  [
    "data whose other name is taken by context",
    { a: 1, data_a: 2 },
    { a: 3 },
    { a: 1, data_a: 2, data_data_a: 3 },
  ],
  [
    "context whose other name is taken",
    { level: 1, context_level: 2 },
    {},
    { context_level: 2, context_context_level: 1 },
  ],
  [
    "data named as a renamed field",
    { level: 1 },
    { context_level: 2 },
    { context_level: 1, data_context_level: 2 },
  ],
  ["context without a value", { a: undefined }, { a: 1 }, { a: 1 }],
];

let sent: Fields[] = [];
beforeEach(() => {
  sent = [];
  vi.stubGlobal("fetch", async (_url: string, { body }: { body: string }) => {
    sent.push(...(JSON.parse(body) as Fields[]));
    return new Response(null, { status: 202 });
  });
});
afterEach(() => vi.unstubAllGlobals());

test.each(table)(
  "Server and browser use the same names for %s",
  async (_what, context, data, record) => {
    const lines: string[] = [];
    const server = createServerLogger({
      environment: "test",
      env: {},
      write: (line) => void lines.push(line),
    });
    server.child(context).info("said", data);
    const { time, ...onServer } = JSON.parse(lines[0] ?? "") as Fields;
    const client = createClientLogger({ url: "/log", token: "t" });
    client.child(context).info("said", data);
    await client.close();
    const { clientTime, ...inBrowser } = sent[0] ?? {};

    expect(onServer).toEqual({ level: "info", msg: "said", ...record });
    expect(inBrowser).toEqual(onServer);
    expect([typeof time, typeof clientTime]).toEqual(["string", "string"]);
  },
);

test("The browser console in development shows reserved field names renamed as well", async () => {
  const shown = vi.spyOn(console, "info").mockReturnValue(undefined);
  const development = createClientLogger({
    url: "/log",
    token: "t",
    environment: "development",
    context: { level: 1 },
  });
  development.info("said", { clientTime: 2, msg: 3 });
  await development.close();

  expect(shown.mock.calls).toEqual([
    ["said", { context_level: 1, data_clientTime: 2, data_msg: 3 }],
  ]);
  shown.mockRestore();
});
