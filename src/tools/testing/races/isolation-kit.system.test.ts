import { AsyncResource } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { PutCommand, TransactWriteCommand } from "@aws-sdk/lib-dynamodb";
import type { Context } from "aws-lambda";
import { expect, test, vi } from "vitest";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { access } from "../../../base/identity/access.ts";
import { type IsolationError, isolationOf, lambdaContext } from "../index.ts";

const outside = new AsyncResource("no request");
let last: { tenantId: string } = { tenantId: "" };
const carts = defineFeature("carts", (r) => {
  const table = r.table("carts", { partitionKey: "pk", tenant: false });
  const write = (name: string, leak: (tenantId: string) => Promise<string>) =>
    r.write(`cart.${name}`, {
      route: `POST /${name}`,
      access: access.authenticated,
      handler: async (ctx) => {
        last = { tenantId: String(ctx.user.tenantId) };
        const mine = last.tenantId;
        await sleep(1);
        const owner = name === "row" ? last.tenantId : mine;
        const Item = { pk: ctx.requestId, owner, bytes: Buffer.from(owner) };
        await ctx.db.send(new PutCommand({ TableName: table.name, Item }));
        if (name === "well") {
          const others = { Delete: { TableName: table.name, Key: { pk: last.tenantId } } };
          const ours = { Put: { TableName: table.name, Item: { pk: mine } } };
          if (last.tenantId !== mine)
            await ctx.db.send(new TransactWriteCommand({ TransactItems: [others, ours] }));
          await outside.runInAsyncScope(() =>
            ctx.db.send(new PutCommand({ TableName: table.name, Item: { pk: "unknown" } })),
          );
        }
        if (name === "line") ctx.log.info("cart.stored", { owner: last.tenantId });
        if (name === "console") console.log("stored for %s", last.tenantId);
        if (name === "stderr") process.stderr.write(`stored for ${last.tenantId}\n`);
        return { owner: await leak(mine) };
      },
    });
  write("well", async (tenantId) => tenantId);
  write("answer", async () => last.tenantId);
  for (const name of ["row", "line", "console", "stderr"]) write(name, async (own) => own);
});
const server = buildServer({ features: [carts] });

const ofServer = (path: string, count = 40) =>
  isolationOf(server, {
    count,
    request: ({ tenantId, userId, requestId }) => [
      path,
      { body: {}, as: { id: userId, tenantId }, headers: { "x-request-id": requestId } },
    ],
  });
const failed = async (run: Promise<unknown>) => {
  const error = await run.then(
    () => undefined,
    (reason: IsolationError) => reason,
  );
  if (error === undefined) throw new Error("it found nothing");
  return error;
};
const places = ({ leaks }: IsolationError) => [...new Set(leaks.map(({ where }) => where))].sort();

test("a server that keeps its requests apart is isolated", async () => {
  const { requests, overlapped, lines } = await ofServer("/well", 200);
  expect(requests).toBe(200);
  expect(overlapped).toBeGreaterThan(100);
  expect(lines).toBeGreaterThanOrEqual(200);
});

test.each([
  ["/answer", ["answer", "row"]], // the answer is stored for a repeat
  ["/row", ["row"]],
  ["/line", ["line"]],
  ["/console", ["line"]],
  ["/stderr", ["line"]],
])("%s is found to leak", async (path, expected) => {
  const error = await failed(ofServer(path));
  expect(places(error)).toEqual(expected);
  const [leak] = error.leaks;
  expect(leak?.text).toContain(leak?.foreign);
  expect(leak?.foreign).not.toContain(`-${leak?.of}-`);
  expect(error.message).toContain(leak?.foreign);
});

test.each([
  ["2.33", 1],
  ["2.34", 0],
])(
  "the context that Powertools Logger %s shares between invocations is found",
  async (version, isFound) => {
    const { Logger } = (await import(
      `powertools-logger-${version}`
    )) as typeof import("@aws-lambda-powertools/logger");
    const logger = new Logger({ serviceName: "carts", logLevel: "INFO" });
    const lambda = async (_event: object, context: Context) => {
      logger.addContext(context);
      await sleep(2);
      logger.info("stored");
      return { stored: true };
    };
    const isolated = isolationOf(
      { lambda },
      {
        request: ({ tenantId, requestId }) => ({
          event: {},
          context: lambdaContext({ awsRequestId: requestId, tenantId }),
        }),
      },
    );
    if (isFound) expect(places(await failed(isolated))).toEqual(["line"]);
    else expect(await isolated).toMatchObject({ requests: 200, lines: 200 });
  },
);

test("a function sees Lambda's runtime for concurrent invocations, only while it is called", async () => {
  type Store = Record<string, (...given: unknown[]) => unknown> & { PROTECTED_KEYS: object };
  // Safe cast: Lambda's runtime defines this name.
  const shared = globalThis as unknown as { awslambda?: { InvokeStore?: Store } };
  const before = shared.awslambda;
  const seen: unknown[] = [];
  let stored: Store | undefined;
  await isolationOf(
    {
      lambda: async ({ n }: { n: number }, { awsRequestId, tenantId }: Context) => {
        stored = shared.awslambda?.InvokeStore;
        stored?.["set"]?.("n", n);
        await sleep(50);
        seen.push(
          process.env["AWS_LAMBDA_MAX_CONCURRENCY"],
          stored?.["get"]?.("n") === n,
          stored?.["getRequestId"]?.() === awsRequestId,
          stored?.["getTenantId"]?.() === tenantId,
          stored?.["getXRayTraceId"]?.(),
          stored?.["hasContext"]?.(),
        );
      },
    },
    {
      count: 2,
      request: ({ n, tenantId, requestId: awsRequestId }) => ({
        event: { n },
        context: lambdaContext({ awsRequestId, tenantId }),
      }),
    },
  );
  const each = ["2", true, true, true, undefined, true];
  expect(seen).toEqual([...each, ...each]);
  expect(stored?.["getRequestId"]?.()).toBe("-");
  expect(() => stored?.["set"]?.("n", 1)).toThrow("No context available");
  expect([shared.awslambda, process.env["AWS_LAMBDA_MAX_CONCURRENCY"]]).toEqual([
    before,
    undefined,
  ]);
});

test("a function's body is decoded before it is searched", async () => {
  const lambda = async ({ tenantId }: { tenantId: string }) => {
    const before = last.tenantId;
    last = { tenantId };
    await sleep(50);
    return { isBase64Encoded: true, body: Buffer.from(`before: ${before}`).toString("base64") };
  };
  const request = ({ tenantId }: { tenantId: string }) => ({
    event: { tenantId },
    context: lambdaContext({}),
  });
  const error = await failed(isolationOf({ lambda }, { count: 3, request }));
  expect(places(error)).toEqual(["answer"]);
  expect(error.leaks[0]?.text).toContain("before: tenant-");
});

test("a fetch function is called with requests, and its errors are searched as well", async () => {
  const fetchers = {
    well: async (request: Request) => {
      await sleep(50);
      return new Response(await request.text(), { headers: { vary: "x" } });
    },
    failing: async (request: Request) => {
      const before = last.tenantId;
      last = { tenantId: await request.text() };
      await sleep(50);
      throw new Error(`before it was ${before}`);
    },
  };
  const request = ({ tenantId }: { tenantId: string }) =>
    new Request("http://localhost/", { method: "POST", body: tenantId });
  expect(await isolationOf(fetchers.well, { count: 9, request })).toMatchObject({ lines: 0 });
  expect(places(await failed(isolationOf(fetchers.failing, { count: 9, request })))).toEqual([
    "answer",
  ]);
});

test("requests that do not overlap prove nothing, and output outside of requests is printed", async () => {
  const printed: unknown[] = [];
  const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed.push(text);
    return true;
  });
  const noise = vi.spyOn(console, "info").mockImplementation((text) => void printed.push(text));
  try {
    const never = isolationOf(() => new Response(), {
      count: 3,
      request: ({ n }) => {
        process.stdout.write(`request ${n}\n`);
        console.info(n);
        return new Request("http://localhost/");
      },
    });
    expect((await failed(never)).message).toContain("none overlapped another");
    expect(printed).toEqual(["request 0\n", 0, "request 1\n", 1, "request 2\n", 2]);
  } finally {
    spy.mockRestore();
    noise.mockRestore();
  }
});

test("an error of the scenario is thrown as it is", async () => {
  const request = () => Promise.reject(new TypeError("no token"));
  await expect(isolationOf(server, { count: 3, request })).rejects.toThrow(TypeError);
});

test("a taken write calls back", async () => {
  let told = 0;
  await isolationOf(
    async () => {
      await sleep(50);
      await new Promise<void>((resolve) =>
        process.stdout.write("a\n", () => {
          told += 1;
          resolve();
        }),
      );
      return new Response();
    },
    { count: 2, request: () => new Request("http://localhost/") },
  );
  expect(told).toBe(2);
});
