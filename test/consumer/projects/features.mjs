// An application that uses keelson and the packages that both share. Prints its results as one line of JSON.
import { makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { Logger } from "@aws-lambda-powertools/logger";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { PutCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import { access, buildServer, createTenantConfig, defineFeature, reply } from "keelson";
import { ClaimLayer } from "keelson/claim-layer";
import { lambdaHttp, lambdaQueue } from "keelson/lambda";
import { requestScope, writeOnce } from "keelson/middy";
import { startTestApp } from "keelson/testing";
import { z } from "zod";

const notes = defineFeature("notes", (r) => {
  const table = r.table("notes", { partitionKey: "pk", sortKey: "sk", tenant: false });
  const config = r.config({
    keys: { most: createTenantConfig("number", { default: 3, bounds: { min: 1, max: 9 } }) },
  });
  const taken = r.event("note.taken", z.object({ id: z.string() }));
  r.write("note.take", {
    route: "POST /notes",
    access: access.authenticated,
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => {
      await ctx.publish(taken, { id });
      const most = await ctx.config(config.most);
      return ctx.commit(
        [{ Put: { TableName: table.name, Item: { pk: ctx.user.tenantId, sk: id } } }],
        reply({ id, most }, { status: 201 }),
      );
    },
  });
  r.on(taken, {
    name: "copy",
    handler: async (ctx, { payload }) => {
      await ctx.db.send(
        new PutCommand({
          TableName: table.name,
          Item: { pk: ctx.user.tenantId, sk: `copy of ${payload.id}` },
        }),
      );
    },
  });
  r.query("note.list", {
    route: "GET /notes",
    access: access.authenticated,
    handler: async (ctx) => {
      const ids = [];
      const query = {
        TableName: table.name,
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": ctx.user.tenantId },
      };
      // The application's own copy of the paginator, which looks at the client's class.
      for await (const page of paginateQuery({ client: ctx.db, pageSize: 1 }, query))
        ids.push(...page.Items.map(({ sk }) => sk));
      return { ids };
    },
  });
});

/** Output of the application's own Powertools Logger. */
const printed = [];
class Lines extends Logger {
  processLogItem(_level, message) {
    printed.push(message);
  }
}
const powertools = new Lines({ serviceName: "notes", logLevel: "DEBUG" });
const build = () => buildServer({ features: [notes], log: { powertools } });
const ann = { id: "ann", tenantId: "acme" };
const app = await startTestApp(build());
const result = {};
try {
  await app.rows.put({ scope: "tenant", tenantId: "acme", key: "notes:config:most", value: 5 });
  const take = () =>
    app.fetch("/notes", { body: { id: "1" }, as: ann, headers: { "idempotency-key": "k1" } });
  const [first, again] = [await take(), await take()];
  result.write = [first.status, await first.json()];
  result.replay = [again.status, await again.json(), again.headers.get("idempotent-replayed")];
  await app.settled();
  const listed = await app.fetch("/notes", { as: ann });
  result.listed = [listed.status, await listed.json()];

  Object.assign(process.env, app.env);
  const context = {
    awsRequestId: "aws-1",
    functionName: "f",
    getRemainingTimeInMillis: () => 30_000,
  };
  const event = (method, path, headers = {}) => ({
    version: "2.0",
    rawPath: path,
    headers,
    requestContext: { http: { method, path, sourceIp: "203.0.113.9" } },
  });
  const health = await lambdaHttp(build())(event("GET", "/health/live"), context);
  result.lambda = health.statusCode;
  result.queue = await lambdaQueue(build())({ Records: [] }, context);

  let runs = 0;
  const seen = [];
  const adopted = middy({
    executionMode: requestScope(build(), { handler: "legacy.note.take", access: access.everyone }),
  })
    .use({
      before: ({ event }) => void seen.push(event.rawPath),
      after: ({ response }) => Object.assign(response.headers, { "x-after": "1" }) && undefined,
    })
    .use(writeOnce())
    .handler(async (_event, { keelson: ctx }) => {
      runs += 1;
      return { statusCode: 201, headers: {}, body: JSON.stringify({ handler: typeof ctx.commit }) };
    });
  const adoptedEvent = event("POST", "/adopted", { "idempotency-key": "k2" });
  const answers = [await adopted(adoptedEvent, context), await adopted(adoptedEvent, context)];
  result.adopted = [
    runs,
    seen,
    ...answers.map(({ statusCode, body, headers }) => [statusCode, body, headers["x-after"]]),
  ];

  const client = new DynamoDBClient({});
  await client.send(
    new CreateTableCommand({
      TableName: "idempotency",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    }),
  );
  let charges = 0;
  const persistenceStore = new ClaimLayer({ tableName: "idempotency", awsSdkV3Client: client });
  const charge = makeIdempotent(
    async ({ cents }) => {
      charges += 1;
      return { cents };
    },
    { persistenceStore },
  );
  result.claims = [
    await charge({ cents: 7 }, context),
    await charge({ cents: 7 }, context),
    charges,
  ];
  client.destroy();
  result.powertools = printed.includes("server.started") || printed.length > 0;
} finally {
  await app.close();
}
console.log(JSON.stringify(result));
process.exit(0); // functions in Lambda keep their connections
