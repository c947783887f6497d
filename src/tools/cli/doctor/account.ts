import { DescribeTableCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../../base/process/clock.ts";
import { type Check, check, doubtful, fine, unchecked, wrong } from "./outcome.ts";
import type { PlaceOf } from "./place.ts";

/** Clock differences at which AWS rejects signatures, and leases and tokens expire early or late. */
const [refusedMs, noticedMs] = [300_000, 5_000];

export function accountChecks(
  place: PlaceOf<DynamoDBClient>,
  clock: Clock,
  tableName: string,
): Check[] {
  const { client, shown } = place;
  return [
    check("region", async () => {
      try {
        return fine(`${await client.config.region()}, DynamoDB at ${shown}`);
      } catch {
        const fixes = ["export AWS_REGION=eu-west-1", "aws configure set region eu-west-1"];
        return wrong("no region is set", ...fixes);
      }
    }),
    check("credentials", async () => {
      try {
        await client.config.credentials();
        return fine("found");
      } catch (error) {
        const { name } = error as Error; // safe cast: the SDK only throws errors
        return wrong(`none are found (${name})`, "aws configure", "aws sso login");
      }
    }),
    check("clock", async () => {
      const offMs = await differenceMs(place, clock, tableName);
      if (offMs === undefined) return unchecked(`${shown} does not report its time`);
      const seconds = Math.round(Math.abs(offMs) / 1_000);
      if (Math.abs(offMs) <= noticedMs) return fine(`within ${seconds + 1} s of ${shown}`);
      const says = `the clock is ${seconds} s ${offMs > 0 ? "behind" : "ahead of"} ${shown}`;
      const fix = "sudo timedatectl set-ntp true";
      return Math.abs(offMs) > refusedMs
        ? wrong(`${says}: AWS refuses signatures if the clock is 300 s off`, fix)
        : doubtful(`${says}: tokens and leases expire at the wrong time`, fix);
    }),
  ];
}

/** Returns the lead of the endpoint's clock, from the `Date` header of any response. */
async function differenceMs(
  { client, send }: PlaceOf<DynamoDBClient>,
  clock: Clock,
  TableName: string,
): Promise<number | undefined> {
  let date = "";
  let [startMs, endMs] = [0, 0];
  client.middlewareStack.add(
    (next) => async (args) => {
      startMs = clock.now();
      const result = await next(args);
      endMs = clock.now();
      // Safe cast: at this step of the stack, every response is an HTTP response.
      const { headers } = result.response as { readonly headers: { readonly date?: string } };
      date = headers.date ?? "";
      return result;
    },
    { step: "deserialize", priority: "low", name: "keelsonDoctorDate" },
  );
  try {
    await send(new DescribeTableCommand({ TableName }), TableName);
  } catch (error) {
    // An error response has a `Date` header too.
    if (endMs === 0) throw error;
  }
  // `Date` has a resolution of one second and can be from any moment of the call.
  const fromMs = Date.parse(date);
  const untilMs = fromMs + 1_000;
  if (Number.isNaN(fromMs)) return undefined;
  return untilMs < startMs ? untilMs - startMs : Math.max(0, fromMs - endMs);
}
