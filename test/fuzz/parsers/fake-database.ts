import assert from "node:assert/strict";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import fc, { type Arbitrary } from "fast-check";
import type { Database } from "../../../src/base/types/database.ts";
import { oddText } from "../mutations.ts";

export type Wire = Record<string, AttributeValue>;

const oddNumbers = [
  "0",
  "-1",
  "1",
  "0.5",
  "1e21",
  "9007199254740993",
  "1E+125",
  "-1E+125",
  "1E-130",
  "253402300800",
];

/** Any attribute that DynamoDB can keep. */
const oddAttribute: Arbitrary<AttributeValue> = fc.oneof(
  oddText.map((text) => ({ S: text.toWellFormed().slice(0, 2_000) })),
  fc.constantFrom(...oddNumbers).map((text) => ({ N: text })),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => ({ B: bytes })),
  fc.constantFrom(
    ...[
      { NULL: true as const },
      { BOOL: true },
      { BOOL: false },
      { L: [] },
      { M: {} },
      { SS: ["a"] },
    ],
    ...[
      { NS: ["1", "9007199254740993"] },
      { BS: [new Uint8Array(1)] },
      { L: [{ NULL: true as const }] },
    ],
    ...[{ M: { "": { S: "" } } }, { M: { __proto__: { S: "a" } } }],
  ),
);

/** A row with attributes that were changed, removed or added by hand. */
export function damagedItem(...items: readonly object[]): Arbitrary<Wire> {
  const wires = items.map((item) => marshall(item, { removeUndefinedValues: true }));
  const names = [...new Set(wires.flatMap((wire) => Object.keys(wire)))];
  const change = fc.record({
    name: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...names) },
      oddText.map((text) => text.slice(0, 200) || "a"),
    ),
    value: fc.option(oddAttribute, { freq: 6, nil: undefined }),
  });
  return fc
    .tuple(fc.constantFrom(...wires), fc.array(change, { maxLength: 3 }))
    .map(([wire, changes]) => {
      const changed = new Map(Object.entries(wire));
      for (const { name, value } of changes) {
        if (value === undefined) changed.delete(name);
        else changed.set(name, value);
      }
      return Object.fromEntries(changed);
    });
}

/** The row as the document client returns it; `undefined` for a number that the client itself refuses. */
export function documentOf(wire: Wire): Record<string, unknown> | undefined {
  try {
    return unmarshall(wire);
  } catch {
    return undefined;
  }
}

/** Number of rows in a partition, and limit for the calls that read a few rows. */
const [mostRows, mostCalls] = [30, 60];

/** A table in which every read finds the same row, and every condition fails. */
export function databaseOf(wire: Wire): {
  readonly database: Database;
  readonly calls: () => number;
} {
  let calls = 0;
  const item = documentOf(wire);
  const answers: Readonly<Record<string, () => unknown>> = {
    GetItemCommand: () => (calls > mostRows ? {} : { Item: wire }),
    GetCommand: () => ({ Item: item }),
    QueryCommand: () => ({ Items: [item] }),
    ScanCommand: () => ({ Items: [item], ScannedCount: 1 }),
    BatchGetCommand: () => ({ Responses: { table: [item] } }),
    UpdateItemCommand: () => ({ Attributes: wire }),
    DeleteItemCommand: () => ({ Attributes: wire }),
    PutItemCommand: () => {
      throw Object.assign(new Error("the condition failed"), {
        name: "ConditionalCheckFailedException",
        Item: wire,
      });
    },
  };
  const send = async (command: object) => {
    calls += 1;
    assert.ok(calls <= mostCalls, `more than ${mostCalls} calls for one row`);
    return answers[command.constructor.name]?.() ?? {};
  };
  return { database: { send } as never, calls: () => calls }; // safe: answers have the form of the SDK's
}
