import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import type { ClientOptions } from "../../../aws/clients/client-options.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import type { Variables } from "../../../base/process/environment.ts";
import type { Database } from "../../../base/types/database.ts";

/** `endpoint`, from a server's options, overrides the endpoints of the environment. */
export function awsPlace(
  env: Variables,
  service: Parameters<typeof endpointOf>[1],
  endpoint?: string,
): ClientOptions {
  return { endpoint: endpoint ?? endpointOf(env, service), ...accountOf(env) };
}

export async function withDatabase<Result>(
  place: ClientOptions,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(place);
  try {
    return await work(database);
  } finally {
    database.destroy();
  }
}
