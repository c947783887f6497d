import type { Database } from "../../src/base/types/database.ts";
import { gateCalls, lostAnswer, ungateCalls } from "../../src/tools/testing/app/faults.ts";

/** Loses the answer to the first call of `operation` within `work`, so that the SDK repeats the call. */
export async function withLostAnswer<Result>(
  client: Pick<Database, "middlewareStack">,
  operation: string,
  work: () => Promise<Result>,
): Promise<Result> {
  let calls = 0;
  gateCalls(client, async (call, send) => {
    const isFirst = call.operation === operation && calls++ === 0;
    const answer = await send();
    if (isFirst) throw Object.assign(new Error("socket hang up"), lostAnswer);
    return answer;
  });
  try {
    const result = await work();
    if (calls < 2) throw new Error(`${operation} was sent ${calls} times`);
    return result;
  } finally {
    ungateCalls(client);
  }
}
