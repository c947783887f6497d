import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, type Server, serverInternals } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import type { HttpApiEvent } from "./api-gateway.ts";
import { lambdaHandler } from "./http-handler.ts";

type Item = Readonly<Record<string, Readonly<Record<string, string>>>>;
interface Put {
  readonly Item: Item;
  readonly ConditionExpression: string;
}
interface Answer {
  readonly status: number;
  readonly body: object;
}

/** The only row of the store, the calls that arrived, and whether the SDK made them. */
let stored: Item | undefined;
let calls: { readonly operation: string; readonly bySdk: boolean }[] = [];
/** Answers a call in place of the store. */
let instead: (operation: string, input: Put) => Answer | undefined;
let runs = 0;
const servers: Server[] = [];

const http = createServer(async (request, response) => {
  const operation = String(request.headers["x-amz-target"]).replace(/^.*\./, "");
  calls.push({ operation, bySdk: request.headers["user-agent"] !== undefined });
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const input = JSON.parse(Buffer.concat(chunks).toString());
  const { status, body } = instead(operation, input) ?? answerOf(operation, input);
  response.writeHead(status).end(JSON.stringify(body));
});

/** DynamoDB, for a table of one row and the two conditions of a claim. */
function answerOf(operation: string, { Item, ConditionExpression }: Put): Answer {
  if (operation === "GetItem") return { status: 200, body: { Item: stored } };
  const isTaken = ConditionExpression.startsWith("attribute_not_exists") && stored !== undefined;
  if (isTaken) return { status: 400, body: { __type: `x#${refused}`, Item: stored } };
  stored = Item;
  return { status: 200, body: {} };
}

const refused = "ConditionalCheckFailedException";

beforeEach(async () => {
  [stored, calls, runs, instead] = [undefined, [], 0, () => undefined];
  if (!http.listening) await once(http.listen(0, "127.0.0.1"), "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port
  vi.stubEnv("AWS_ENDPOINT_URL", `http://127.0.0.1:${port}`);
  vi.stubEnv("AWS_REGION", "us-east-1");
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKID");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  vi.stubEnv("AWS_PROFILE", undefined);
  vi.stubEnv("HOME", "/nonexistent");
});
afterEach(async () => {
  for (const server of servers.splice(0)) await serverInternals(server).runtime?.close();
  vi.unstubAllEnvs();
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
});

const marks = defineFeature("marks", (r) => {
  r.write("mark.set", {
    route: "PUT /marks",
    access: access.everyone,
    handler: async () => ({ run: ++runs }),
  });
});

/** Sends the same write to a new process. */
async function setMark() {
  const server = buildServer({ features: [marks], log: { level: "error" } });
  servers.push(server);
  const event = {
    version: "2.0",
    rawPath: "/marks",
    rawQueryString: "",
    headers: { "idempotency-key": "k1" },
    isBase64Encoded: false,
    requestContext: {
      stage: "$default",
      http: { method: "PUT", path: "/marks", sourceIp: "203.0.113.9" },
    },
  } as unknown as HttpApiEvent; // the parts of the event that are read
  const { statusCode, body } = await lambdaHandler(server, "marks.mark.set")(event, {} as never);
  return [statusCode, JSON.parse(body ?? "")];
}

const lightPut = { operation: "PutItem", bySdk: false };
const sdkPut = { operation: "PutItem", bySdk: true };

test("a write takes and completes its claim without the SDK, and another process replays it without the SDK", async () => {
  expect(await setMark()).toEqual([200, { run: 1 }]);
  expect(stored?.["status"]).toEqual({ S: "COMPLETED" });
  expect(await setMark()).toEqual([200, { run: 1 }]);
  expect(calls).toEqual([lightPut, lightPut, lightPut]);
});

test("the SDK reads the claim if the store refuses the condition without the row", async () => {
  await setMark();
  instead = (operation) =>
    operation === "PutItem" ? { status: 400, body: { __type: `x#${refused}` } } : undefined;

  expect(await setMark()).toEqual([200, { run: 1 }]);
  expect(calls.slice(2)).toEqual([lightPut, { operation: "GetItem", bySdk: true }]);
});

test("a claim whose first answer was lost is taken once, and the handler runs", async () => {
  instead = (operation, input) => {
    if (calls.length > 1) return undefined;
    answerOf(operation, input);
    return { status: 500, body: {} };
  };

  expect(await setMark()).toEqual([200, { run: 1 }]);
  expect(calls).toEqual([lightPut, sdkPut, sdkPut]);
});

test("any other refusal of the store is repeated by the SDK", async () => {
  instead = () =>
    calls.length > 1
      ? undefined
      : { status: 400, body: { __type: "x#ProvisionedThroughputExceededException" } };

  expect(await setMark()).toEqual([200, { run: 1 }]);
  expect(calls).toEqual([lightPut, sdkPut, sdkPut]);
  expect(runs).toBe(1);
});
