import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterEach, describe, expect, test } from "vitest";
import { type StubAws, stubAws } from "../../../../test/support/stub-aws.ts";
import {
  configTable,
  keptEventsTable,
  onceTable,
  outboxTable,
  type TableDeclaration,
} from "../../../app/handlers/table.ts";
import { neededTable } from "../../infra/needs.ts";
import { placeOf, withClient } from "./place.ts";
import { tableChecks } from "./tables.ts";

let stub: StubAws | undefined;
let client: DynamoDBClient | undefined;
afterEach(() => {
  client?.destroy();
  stub?.close();
});

/** The outcome of a table's check in eu-west-1, and `undefined` if there is no such check. */
async function checked(table: TableDeclaration, described: object) {
  stub = await stubAws({ DescribeTable: { Table: { TableStatus: "ACTIVE", ...described } } });
  const env = {
    AWS_REGION: "eu-west-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  const signal = AbortSignal.timeout(10_000);
  const place = placeOf("dynamodb", env, { signal, timeoutMs: 10_000, endpoint: stub.endpoint });
  client = new DynamoDBClient(place.options);
  const checks = tableChecks(withClient(place, client), neededTable(table, "t"));
  return checks.find(({ name }) => name === "table t: Regions")?.run();
}

const GlobalTableVersion = "2019.11.21";
const Replicas = [{ RegionName: "us-east-1" }, { RegionName: "us-west-2" }];
const eventual = { GlobalTableVersion, Replicas, MultiRegionConsistency: "EVENTUAL" };
const strong = { GlobalTableVersion, Replicas, MultiRegionConsistency: "STRONG" };
const everywhere = "in eu-west-1, us-east-1, us-west-2";
const own = "create a separate table in each Region";

describe("a global table", () => {
  test("of claims fails, because two Regions would both win a claim", async () => {
    expect(await checked(onceTable, eventual)).toEqual({
      status: "fail",
      message: `it is a global table, ${everywhere}: two Regions would both win a claim; ${own}`,
      fix: [
        expect.stringMatching(/^aws dynamodb create-table .*--table-name t-2 /),
        "export KEELSON_TABLE_ONCE=t-2",
      ],
    });
  });

  test("of the outbox fails, because each Region would dispatch all rows", async () => {
    expect(await checked(outboxTable, eventual)).toEqual({
      status: "fail",
      message: `it is a global table, ${everywhere}: each Region would dispatch the events and jobs of all Regions; ${own}`,
      fix: [
        expect.stringMatching(/^aws dynamodb create-table .*--table-name t-2 /),
        "export KEELSON_TABLE_OUTBOX=t-2",
      ],
    });
  });

  test("of kept events gets a warning, because two Regions can both count an event", async () => {
    expect(await checked(keptEventsTable, eventual)).toEqual({
      status: "warn",
      message: `it is a global table, ${everywhere}: two Regions can both count an event in a projection`,
      fix: [],
    });
  });

  test("of configuration passes, and the line says which write wins", async () => {
    expect(await checked(configTable, eventual)).toEqual({
      status: "ok",
      message: `it is a global table, ${everywhere}: the last Region to write a setting wins`,
      fix: [],
    });
  });

  test.each<[string, TableDeclaration, string, string]>([
    ["claims", onceTable, "fail", "no handler can commit"],
    ["the outbox", outboxTable, "fail", "no handler can publish or enqueue"],
    ["kept events", keptEventsTable, "fail", "no handler can publish an event that is kept"],
    ["configuration", configTable, "warn", "settings can be read but not written"],
  ])(
    "of %s that is strongly consistent is reported, because DynamoDB refuses transactions",
    async (_, table, status, consequence) => {
      expect(await checked(table, strong)).toMatchObject({
        status,
        message: expect.stringContaining(
          `it is a strongly consistent global table, ${everywhere}: DynamoDB refuses transactions there, so ${consequence}`,
        ),
      });
    },
  );

  test.each<[string, object, string]>([
    ["its replicas only", { Replicas }, everywhere],
    ["its own Region among the replicas", { Replicas: [{ RegionName: "eu-west-1" }] }, "eu-west-1"],
    ["its version only", { GlobalTableVersion }, "in eu-west-1"],
  ])("is found if DynamoDB describes %s", async (_, described, regions) => {
    expect(await checked(onceTable, described)).toMatchObject({
      status: "fail",
      message: expect.stringContaining(`${regions}: two Regions`),
    });
  });
});

test.each<[string, object]>([
  ["never had a replica", {}],
  ["has lost its replicas", { Replicas: [] }],
])("a table that %s passes", async (_, described) => {
  expect(await checked(onceTable, described)).toEqual({
    status: "ok",
    message: "not a global table",
    fix: [],
  });
});

test("a table of a feature is not checked, whatever its name", async () => {
  for (const name of ["files", "constructor"]) {
    expect(await checked({ ...configTable, name }, eventual)).toBeUndefined();
    client?.destroy();
    stub?.close();
  }
});
