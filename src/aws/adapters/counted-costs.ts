import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { ambientStore } from "../../base/request/ambient.ts";

/** Members of commands and answers that count. */
interface Input {
  readonly ReturnConsumedCapacity?: string | undefined;
  readonly TransactItems?: readonly unknown[];
  readonly Entries?: readonly Readonly<Record<"Source" | "DetailType" | "Detail", string>>[];
  readonly MessageBody?: string;
}

interface Capacity {
  readonly CapacityUnits?: number;
}

interface Output {
  ConsumedCapacity?: Capacity | readonly Capacity[] | undefined;
}

type Stored = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const reads = /^(?:(?:Batch)?GetItem|Query|Scan|TransactGetItems)Command$/;
const writes = /^(?:(?:Put|Update|Delete|BatchWrite)Item|TransactWriteItems)Command$/;

/**
 * Adds the consumption of each call to the run that makes it. Calls outside of runs, such as polls
 * and sweeps, do not count.
 */
export function countCosts({ middlewareStack }: Pick<DynamoDBClient, "middlewareStack">): void {
  middlewareStack.add(
    (next, { commandName = "", clientName = "" }) =>
      async (given) => {
        const run = ambientStore();
        if (run === undefined) return next(given);
        run.cost ??= { readUnits: 0, writeUnits: 0, messageBytes: 0 };
        const { cost } = run;
        const input = given.input as Input; // safe: all members are optional
        if (clientName !== "DynamoDBClient") {
          const answer = await next(given);
          cost.messageBytes += messageBytes(commandName, input);
          return answer;
        }
        const kind = kindOf(commandName);
        if (kind === undefined) return next(given);
        const { ReturnConsumedCapacity = "NONE" } = input;
        const isAsked = ReturnConsumedCapacity !== "NONE";
        const metered = isAsked ? input : { ...input, ReturnConsumedCapacity: "TOTAL" };
        try {
          const answer = await next({ ...given, input: metered as typeof given.input }); // safe: these commands have the member
          const output = answer.output as Output; // safe: the member is optional
          for (const { CapacityUnits = 0 } of [output.ConsumedCapacity ?? []].flat())
            cost[kind] += CapacityUnits;
          if (!isAsked) delete output.ConsumedCapacity;
          return answer;
        } catch (error) {
          cost[kind] += failedUnits(error, input);
          throw error;
        }
      },
    { step: "initialize", priority: "high", name: "keelsonCosts" },
  );
}

function kindOf(commandName: string): "readUnits" | "writeUnits" | undefined {
  if (reads.test(commandName)) return "readUnits";
  return writes.test(commandName) ? "writeUnits" : undefined;
}

/** DynamoDB charges a failed condition for the stored item, and does not answer with the units. */
function failedUnits(error: unknown, { TransactItems = [] }: Input): number {
  if (!(error instanceof Error)) return 0;
  if (error.name === "TransactionCanceledException") return 2 * TransactItems.length;
  if (error.name !== "ConditionalCheckFailedException") return 0;
  const { Item = {} } = error as { readonly Item?: Stored }; // safe: present if the call asks for it
  let bytes = 0;
  for (const [name, value] of Object.entries(Item)) bytes += name.length + sizeOf(value);
  return Math.max(1, Math.ceil(bytes / 1_024));
}

function sizeOf(attribute: Readonly<Record<string, unknown>>): number {
  const [value] = Object.values(attribute);
  if (value instanceof Uint8Array) return value.byteLength;
  // Lists and maps count about as many bytes as their JSON has.
  return Buffer.byteLength(typeof value === "string" ? value : JSON.stringify(value));
}

function messageBytes(commandName: string, { Entries = [], MessageBody = "" }: Input): number {
  if (commandName === "SendMessageCommand") return Buffer.byteLength(MessageBody);
  if (commandName !== "PutEventsCommand") return 0;
  return Entries.reduce(
    (sum, { Source, DetailType, Detail }) =>
      sum + Buffer.byteLength(`${Source}${DetailType}${Detail}`),
    0,
  );
}
