import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import type { TableDeclaration } from "../../src/app/handlers/table.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { openDatabase } from "../../src/aws/clients/dynamodb.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import { buildServer, defineFeature } from "../../src/index.ts";
import { diagnose, type Finding } from "../../src/tools/cli/doctor/diagnose.ts";
import { localStack } from "./endpoint.ts";

// Features that the embedded stack lacks: recovery, protection, streams, and missing time to live.

const { endpoint, region, credentials } = localStack();
const prefix = `doctor-${crypto.randomUUID().slice(0, 8)}`;
const drops = defineFeature(
  "drops",
  (r) => void r.event("doctor.called" as never, z.object({}) as never),
);
const server = serverInternals(buildServer({ features: [drops], dynamodb: { prefix } }));
const client = new DynamoDBClient({ endpoint, region, credentials });
const env = {
  AWS_ENDPOINT_URL: endpoint,
  AWS_REGION: region,
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
};
const table = (name: string) => `${prefix}-${name}`;

afterAll(async () => {
  for (const name of ["config", "once", "outbox", "shelf"]) {
    const unprotected = { TableName: table(name), DeletionProtectionEnabled: false };
    await client.send(new UpdateTableCommand(unprotected)).catch(() => undefined);
    await client.send(new DeleteTableCommand({ TableName: table(name) })).catch(() => undefined);
  }
  client.destroy();
});

const look = () => diagnose(server, { env, clock: { now: () => Date.now() }, timeoutMs: 60_000 });
const shown = (findings: readonly Finding[]) =>
  findings
    .filter(({ name }) => name.startsWith("table"))
    .map(({ status, name }) => `${status} ${name.replace(prefix, "")}`);

test("doctor tells missing, misconfigured and correct resources apart", async () => {
  const create = (name: string) =>
    client.send(
      new CreateTableCommand({
        TableName: table(name),
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: ["pk", "sk"].map((AttributeName) => ({
          AttributeName,
          AttributeType: "S",
        })),
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "sk", KeyType: "RANGE" },
        ],
      }),
    );
  await create("config");
  await create("once");
  expect(shown(await look())).toEqual([
    "ok table -config",
    "warn table -config: point-in-time recovery",
    "warn table -config: deletion protection",
    "ok table -config: Regions",
    "ok table -once",
    "fail table -once: time to live",
    "ok table -once: Regions",
    "fail table -outbox",
    "skip table -outbox: point-in-time recovery",
    "skip table -outbox: deletion protection",
    "skip table -outbox: stream",
    "skip table -outbox: Regions",
  ]);
  await create("outbox");
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: true };
  for (const TableName of [table("config"), table("outbox")]) {
    await client.send(
      new UpdateContinuousBackupsCommand({ TableName, PointInTimeRecoverySpecification }),
    );
  }
  await client.send(
    new UpdateTableCommand({ TableName: table("config"), DeletionProtectionEnabled: true }),
  );
  const TimeToLiveSpecification = { Enabled: true, AttributeName: "expiration" };
  await client.send(
    new UpdateTimeToLiveCommand({ TableName: table("once"), TimeToLiveSpecification }),
  );
  // In one call, because LocalStack's UpdateTable turns protection off if it is not named.
  const StreamSpecification = { StreamEnabled: true, StreamViewType: "KEYS_ONLY" as const };
  const updated = {
    TableName: table("outbox"),
    DeletionProtectionEnabled: true,
    StreamSpecification,
  };
  await client.send(new UpdateTableCommand(updated));
  expect(shown(await look())).toEqual([
    "ok table -config",
    "ok table -config: point-in-time recovery",
    "ok table -config: deletion protection",
    "ok table -config: Regions",
    "ok table -once",
    "ok table -once: time to live",
    "ok table -once: Regions",
    "ok table -outbox",
    "ok table -outbox: point-in-time recovery",
    "ok table -outbox: deletion protection",
    "ok table -outbox: stream",
    "ok table -outbox: Regions",
  ]);
});

test("doctor reports an index that a table lacks, until it is created in the existing table", async () => {
  const keys = { partitionKey: "pk", sortKey: "sk" };
  const indexes = {
    byOwner: { partitionKey: "owner", sortKey: "createdAt", project: ["size"] },
    bySize: { partitionKey: "size" },
  };
  const shelf = defineFeature(
    "shelf",
    (r) => void r.table("shelf", { ...keys, indexes, tenant: false }),
  );
  const indexed = serverInternals(buildServer({ features: [shelf], dynamodb: { prefix } }));
  const database = await openDatabase({ endpoint, region, credentials });
  const ensure = (declared: TableDeclaration) =>
    ensureTables(database, [{ ...declared, tableName: table("shelf") }], "create");
  const outcomes = async () =>
    shown(
      await diagnose(indexed, { env, clock: { now: () => Date.now() }, timeoutMs: 60_000 }),
    ).filter((line) => /-shelf($|: index)/.test(line));
  await ensure({ name: "shelf", ...keys, indexes: [] });
  expect(await outcomes()).toEqual([
    "ok table -shelf",
    "fail table -shelf: index byOwner",
    "fail table -shelf: index bySize",
  ]);
  for (const declared of indexed.registry.tables.values()) await ensure(declared);
  expect(await outcomes()).toEqual([
    "ok table -shelf",
    "ok table -shelf: index byOwner",
    "ok table -shelf: index bySize",
  ]);
  database.destroy();
});
