import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { lambdaContext, lambdaEvent, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

// examples/moving: every stage keeps the promises of the first one, and reads the orders of the next one. Up to stage 3, the
// API's authorizer verifies tokens; from stage 4 on, keelson does.

type Handler = (event: never, context: Context) => Promise<APIGatewayProxyStructuredResultV2>;
interface Stage {
  readonly name: string;
  readonly isAuthorized: boolean;
  readonly create: Handler;
  readonly list: Handler;
}

let app: TestApp;
let stages: readonly Stage[];
beforeAll(async () => {
  Object.assign(process.env, { COGNITO_ISSUER: await cognito.start(), COGNITO_CLIENT: "client" });
  const { server } = await import("../../examples/moving/stage-4/server.ts");
  app = await startTestApp(server);
  const tables = { KEELSON_TABLE_FORMER_ORDERS: "former", ORDERS_TABLE: "former" };
  Object.assign(process.env, app.env, tables, { IDEMPOTENCY_TABLE: "idempotency" });
  Object.assign(process.env, { LOG_LEVEL: "CRITICAL", POWERTOOLS_LOG_LEVEL: "CRITICAL" });
  const client = new DynamoDBClient({});
  const text = (AttributeName: string) => ({ AttributeName, AttributeType: "S" as const });
  const keyed = (AttributeName: string, KeyType: "HASH" | "RANGE") => ({ AttributeName, KeyType });
  for (const [TableName, ...names] of [
    ["former", "pk", "sk"],
    ["idempotency", "id"],
  ] as const)
    await client.send(
      new CreateTableCommand({
        ...{ TableName, BillingMode: "PAY_PER_REQUEST" },
        KeySchema: names.map((name, index) => keyed(name, index === 0 ? "HASH" : "RANGE")),
        AttributeDefinitions: names.map(text),
      }),
    );
  const folder = "../../examples/moving";
  const load = async (path: string) => (await import(`${folder}/${path}.ts`)).handler as Handler;
  const list = await load("before/list-orders");
  const { http } = (await import(`${folder}/stage-4/functions.ts`)) as { http: Handler };
  stages = [
    { name: "before", isAuthorized: true, create: await load("before/create-order"), list },
    { name: "stage-1", isAuthorized: true, create: await load("stage-1/create-order"), list },
    { name: "stage-2", isAuthorized: true, create: await load("stage-2/create-order"), list },
    {
      name: "stage-3",
      isAuthorized: true,
      create: await load("stage-3/create-order"),
      list: await load("stage-3/list-orders"),
    },
    { name: "stage-4", isAuthorized: false, create: http, list: http },
  ];
});
afterAll(() => Promise.all([app?.close(), cognito.stop()]));

/** A user pool: its key set, and the ID tokens that it signs. */
const cognito = (() => {
  const pool = createServer((_, response) => response.end(JSON.stringify({ keys })));
  const keys: object[] = [];
  let issuer = "";
  let key: CryptoKey;
  return {
    start: async () => {
      const pair = await generateKeyPair("RS256");
      key = pair.privateKey;
      keys.push({ ...(await exportJWK(pair.publicKey)), kid: "key-1", alg: "RS256", use: "sig" });
      await once(pool.listen(0, "127.0.0.1"), "listening");
      issuer = `http://127.0.0.1:${(pool.address() as AddressInfo).port}`; // safe: it listens on a port
      return issuer;
    },
    token: (claims: JWTPayload, audience = "client") =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: "RS256", kid: "key-1" })
        .setIssuer(issuer)
        .setAudience(audience)
        .setExpirationTime("1h")
        .sign(key),
    stop: () => pool.close(),
  };
})();

const claimsOf = (tenantId: string) => ({ sub: "ann", "custom:tenant_id": tenantId });
/** The caller, as the API of a stage passes it on. */
async function callerOf({ isAuthorized }: Stage, tenantId: string) {
  const claims = claimsOf(tenantId);
  if (isAuthorized) return { claims, headers: {} };
  return { headers: { authorization: `Bearer ${await cognito.token(claims)}` } };
}
async function create(
  stage: Stage,
  body: unknown,
  { key = randomUUID() as string | undefined, tenantId = "acme" } = {},
) {
  const caller = await callerOf(stage, tenantId);
  const headers = {
    "content-type": "application/json",
    ...(key === undefined ? {} : { "idempotency-key": key }),
    ...caller.headers,
  };
  const event = lambdaEvent("httpApi", { path: "/orders", body, ...caller, headers });
  const { statusCode, body: text = "" } = await stage.create(event as never, lambdaContext());
  return { statusCode, order: statusCode === 201 ? JSON.parse(text) : text };
}
async function idsOf(stage: Stage, tenantId = "acme"): Promise<readonly string[]> {
  const event = lambdaEvent("httpApi", { path: "/orders", ...(await callerOf(stage, tenantId)) });
  const { body = "" } = await stage.list(event as never, lambdaContext());
  return JSON.parse(body).items.map(({ id }: { id: string }) => id);
}

describe.each([0, 1, 2, 3, 4])("stage %i", (at) => {
  const stage = () => stages[at] as Stage;

  test("stores an order once for all retries, for its tenant alone", async () => {
    const key = randomUUID();
    const body = { item: "apples", quantity: 3 };
    const first = await create(stage(), body, { key });
    expect(first).toEqual({ statusCode: 201, order: { id: expect.any(String), ...body } });
    expect(await create(stage(), body, { key })).toEqual(first);

    const ids = (await idsOf(stage())).filter((id) => id === first.order.id);
    expect(ids).toHaveLength(1);
    expect(await idsOf(stage(), "umbrella")).not.toContain(first.order.id);
  });

  test("refuses an order that is wrong", async () => {
    expect((await create(stage(), { item: "apples", quantity: 51 })).statusCode).toBe(422);
    expect((await create(stage(), { quantity: 1 })).statusCode).toBe(422);
  });
});

test("an order of each stage can be read after going back to the one before", async () => {
  for (const [at, stage] of stages.entries()) {
    const { order } = await create(stage, { item: "pears", quantity: 1 });
    const former = stages[at - 1];
    if (former !== undefined) expect(await idsOf(former)).toContain(order.id);
  }
});

test("former rows are copied behind the wall once, and stay where they are", async () => {
  const [before, , , copied] = stages as [Stage, Stage, Stage, Stage];
  const { order } = await create(before, { item: "plums", quantity: 2 }, { tenantId: "initech" });
  expect(await idsOf(copied, "initech")).toEqual([]);

  const { copyRows } = await import("../../examples/moving/stage-3/copy-rows.ts");
  expect((await copyRows()).copied).toBeGreaterThan(0);
  expect(await copyRows()).toMatchObject({ copied: 0 });
  expect(await idsOf(copied, "initech")).toEqual([order.id]);
  expect(await idsOf(before, "initech")).toEqual([order.id]);
  expect(await idsOf(copied, "umbrella")).toEqual([]);
});

test("every stage lists all orders of a tenant with more than a hundred", async () => {
  const body = { item: "cherries", quantity: 1 };
  const creations = Array.from({ length: 101 }, () =>
    create(stages[3] as Stage, body, { tenantId: "hooli" }),
  );
  const ids = (await Promise.all(creations)).map(({ order }) => order.id).sort();

  for (const stage of stages)
    expect([stage.name, [...(await idsOf(stage, "hooli"))].sort()]).toEqual([stage.name, ids]);
});

test("stage 4 refuses callers without a token, and tokens of other clients", async () => {
  const { list } = stages[4] as Stage;
  const statusWith = async (headers: Record<string, string>) => {
    const event = lambdaEvent("httpApi", { path: "/orders", headers });
    return (await list(event as never, lambdaContext())).statusCode;
  };
  const foreign = await cognito.token(claimsOf("acme"), "other-client");

  expect(await statusWith({})).toBe(401);
  expect(await statusWith({ authorization: `Bearer ${foreign}` })).toBe(401);
});

test.each(["COGNITO_ISSUER", "COGNITO_CLIENT"])("no stage starts without %s", async (name) => {
  vi.stubEnv(name, undefined);
  const path = `../../examples/moving/stage-1/server.ts?without=${name}`; // the module again
  await expect(import(/* @vite-ignore */ path)).rejects.toThrow("set COGNITO_ISSUER");
  vi.unstubAllEnvs();
});
