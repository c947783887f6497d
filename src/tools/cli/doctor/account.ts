import { DescribeTableCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../../base/process/clock.ts";
import { type Check, doubtful, fine, unchecked, wrong } from "./outcome.ts";
import type { Place } from "./place.ts";

/** AWS refuses signatures of another time than this, in milliseconds; and what makes leases and tokens end too early or too late. */
const [refusedMs, noticedMs] = [300_000, 5_000];

/** Whether there are a region and credentials, and whether the clock is right. */
export function accountChecks(
  client: DynamoDBClient,
  place: Place,
  clock: Clock,
  tableName: string,
): Check[] {
  return [
    {
      name: "region",
      run: async () => {
        try {
          return fine(`${await client.config.region()}, DynamoDB at ${place.shown}`);
        } catch {
          return wrong(
            "no region is set",
            "export AWS_REGION=eu-west-1",
            "aws configure set region eu-west-1",
          );
        }
      },
    },
    {
      name: "credentials",
      run: async () => {
        try {
          await client.config.credentials();
          return fine("found");
        } catch (error) {
          // Safe: the SDK throws errors only.
          return wrong(
            `none are found (${(error as Error).name})`,
            "aws configure",
            "aws sso login",
          );
        }
      },
    },
    {
      name: "clock",
      run: async () => {
        const offMs = await differenceMs(client, place, clock, tableName);
        if (offMs === undefined) return unchecked(`${place.shown} does not say what time it is`);
        const seconds = Math.round(Math.abs(offMs) / 1_000);
        if (Math.abs(offMs) <= noticedMs) return fine(`within ${seconds + 1} s of ${place.shown}`);
        const says = `the clock is ${seconds} s ${offMs > 0 ? "behind" : "ahead of"} ${place.shown}`;
        const fix = "sudo timedatectl set-ntp true";
        return Math.abs(offMs) > refusedMs
          ? wrong(`${says}: AWS refuses signatures if the clock is 300 s off`, fix)
          : doubtful(`${says}: tokens and leases expire at the wrong time`, fix);
      },
    },
  ];
}

/** How much later it is at the endpoint, by the `Date` of any answer at all. */
async function differenceMs(
  client: DynamoDBClient,
  place: Place,
  clock: Clock,
  tableName: string,
): Promise<number | undefined> {
  let date: string | undefined;
  let [startMs, endMs] = [0, 0];
  client.middlewareStack.add(
    (next) => async (args) => {
      startMs = clock.now();
      const result = await next(args);
      endMs = clock.now();
      // Safe: next to the wire, the answer is one of HTTP, whatever it says.
      date = (result.response as { readonly headers: Readonly<Record<string, string>> }).headers[
        "date"
      ];
      return result;
    },
    { step: "deserialize", priority: "low", name: "keelsonDoctorDate" },
  );
  try {
    await place.call("DescribeTable", tableName, () =>
      client.send(new DescribeTableCommand({ TableName: tableName }), {
        abortSignal: place.signal,
      }),
    );
  } catch (error) {
    // An answer that says no says what time it is, too.
    if (endMs === 0) throw error;
  }
  // It is cut off to the second, and of any moment of the call: what lies within is no difference.
  const [fromMs, untilMs] = [Date.parse(date ?? ""), Date.parse(date ?? "") + 1_000];
  if (Number.isNaN(fromMs)) return undefined;
  return untilMs < startMs ? untilMs - startMs : Math.max(0, fromMs - endMs);
}
