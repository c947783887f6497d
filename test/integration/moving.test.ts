import { randomUUID } from "node:crypto";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { lambdaContext, lambdaEvent, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { server as eventsServer } from "../../examples/moving/stage-4/server.ts";

// examples/moving: every stage keeps the promises of the first one, and reads what the next one writes.

type Handler = (event: never, context: Context) => Promise<APIGatewayProxyStructuredResultV2>;
interface Stage {
  readonly name: string;
  readonly create: Handler;
  readonly list: Handler;
}

let app: TestApp;
let stages: readonly Stage[];
beforeAll(async () => {
  app = await startTestApp(eventsServer);
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
    { name: "before", create: await load("before/create-order"), list },
    { name: "stage-1", create: await load("stage-1/create-order"), list },
    { name: "stage-2", create: await load("stage-2/create-order"), list },
    {
      name: "stage-3",
      create: await load("stage-3/create-order"),
      list: await load("stage-3/list-orders"),
    },
    { name: "stage-4", create: http, list: http },
  ];
});
afterAll(() => app.close());

const claimsOf = (tenantId: string) => ({ sub: "ann", "custom:tenant_id": tenantId });
async function create(
  { create: handler }: Stage,
  body: unknown,
  { key = randomUUID() as string | undefined, tenantId = "acme" } = {},
) {
  const headers = {
    "content-type": "application/json",
    ...(key === undefined ? {} : { "idempotency-key": key }),
  };
  const claims = claimsOf(tenantId);
  const event = lambdaEvent("httpApi", { path: "/orders", body, headers, claims });
  const { statusCode, body: text = "" } = await handler(event as never, lambdaContext());
  return { statusCode, order: statusCode === 201 ? JSON.parse(text) : text };
}
async function idsOf({ list }: Stage, tenantId = "acme"): Promise<readonly string[]> {
  const event = lambdaEvent("httpApi", { path: "/orders", claims: claimsOf(tenantId) });
  const { body = "" } = await list(event as never, lambdaContext());
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
