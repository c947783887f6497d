import { DynamoDB, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { RateLimiterDynamo, RateLimiterMemory } from "rate-limiter-flexible";
import { openDatabase } from "../src/aws/clients/dynamodb.ts";
import { dynamoRates } from "../src/aws/stores/rate-store.ts";
import { systemClock } from "../src/base/process/clock.ts";
import { RateCounter } from "../src/parts/limits/rate-counter.ts";
import { type Result, result, sideBySide } from "./measure.ts";

const partition = { text: "tenant acme", tenantId: "acme" };
const limit = { id: "files.file.list requests", window: "day" } as const;
/** Requests of one process, and the number of the window, whose half they stay below. */
const [requests, number] = [2_000, 10_000];

/** A rate limit, beside `rate-limiter-flexible` in memory and with its store for DynamoDB. */
export async function limitResults(env: Readonly<Record<string, string>>): Promise<Result[]> {
  return [await check(), await calls(env)];
}

function check(): Promise<Result> {
  const plenty = Number.MAX_SAFE_INTEGER;
  const store = { take: async () => 0 };
  const counter = new RateCounter({ limit, store, clock: systemClock });
  const peer = new RateLimiterMemory({ points: plenty, duration: 86_400 });
  return sideBySide({
    id: "limit-check",
    ours: async (times) => {
      for (let time = 0; time < times; time++) {
        const verdict = counter.take(partition, plenty, 1);
        if (verdict instanceof Promise) await verdict;
      }
    },
    peer: async (times) => {
      for (let time = 0; time < times; time++) await peer.consume(partition.text, 1);
    },
  });
}

async function calls(env: Readonly<Record<string, string>>): Promise<Result> {
  const { AWS_ENDPOINT_URL: endpoint = "", AWS_REGION: region = "" } = env;
  const credentials = { accessKeyId: "bench", secretAccessKey: "bench" };
  const database = await openDatabase({ endpoint, region, credentials });
  const client = new DynamoDB({ endpoint, region, credentials });
  const ours = countOf(database);
  const store = dynamoRates(database, "keelson-once");
  const counter = new RateCounter({ limit, store, clock: systemClock });
  for (let request = 0; request < requests; request++) await counter.take(partition, number, 1);

  const ready = Promise.withResolvers<void>();
  const peer = new RateLimiterDynamo(
    { storeClient: client, points: number, duration: 86_400, tableName: "peer-limits" },
    (error) => (error ? ready.reject(error) : ready.resolve()),
  );
  await ready.promise;
  const theirs = countOf(client);
  for (let request = 0; request < requests; request++) await peer.consume(partition.text, 1);
  database.destroy();
  client.destroy();
  return result({
    id: "limit-calls",
    ours: ours.calls,
    peer: theirs.calls,
    unit: "calls",
  });
}

/** Counts the calls that a client makes from now on. */
function countOf({ middlewareStack }: Pick<DynamoDBClient, "middlewareStack">) {
  const count = { calls: 0 };
  middlewareStack.add(
    (next) => (given) => {
      count.calls += 1;
      return next(given);
    },
    { step: "initialize" },
  );
  return count;
}
