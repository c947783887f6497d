import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { expect, inject, test } from "vitest";
import { requestDatabases } from "../../src/app/ctx/request-database.ts";
import { openDatabase } from "../../src/aws/clients/dynamodb.ts";
import { openAssumedRole } from "../../src/aws/sessions/tenant-sessions.ts";
import { createWall } from "../../src/parts/wall/wall.ts";

test("an emulator's STS issues sessions to the SDK, and its DynamoDB accepts their signatures", async () => {
  const { endpoint, prefix } = inject("deployed");
  const database = await openDatabase({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const sessions = openAssumedRole({
    ...{ role: "arn:aws:iam::000000000000:role/tenants", database, endpoint, region: "us-east-1" },
    ...{ clock: { now: () => Date.now() }, log: { warn: () => undefined } },
  });
  const tableName = `${prefix}-files`;
  const wall = createWall(
    [{ name: "files", tableName, partitionKey: "pk", indexes: [] }],
    sessions,
  );
  const signers: unknown[] = [];
  database.middlewareStack.add(
    (next) => (given) => {
      signers.push(
        /Credential=([^/]+)/.exec(
          (given.request as { headers: Record<string, string> }).headers["authorization"] ?? "",
        )?.[1],
      );
      return next(given);
    },
    { step: "deserialize", priority: "low" },
  );
  const db = requestDatabases(
    database,
    wall,
  )({ tenantId: "acme", log: { error: fail }, signal: undefined, sessionFor: fail });
  try {
    await db.send(
      new PutCommand({ TableName: tableName, Item: { pk: "acme/session", sk: "1", name: "a" } }),
    );
    expect(
      (
        await db.send(
          new GetCommand({ TableName: tableName, Key: { pk: "acme/session", sk: "1" } }),
        )
      ).Item,
    ).toMatchObject({
      name: "a",
    });
    expect(signers).toEqual([expect.stringMatching(/^[AL]SIA/), expect.stringMatching(/^[AL]SIA/)]);
    expect(signers[0]).toBe(signers[1]);
  } finally {
    sessions.close();
    database.destroy();
  }
});

function fail(): never {
  throw new Error("nothing is refused here");
}
