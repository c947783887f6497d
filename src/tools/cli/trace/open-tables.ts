import { onceTable, outboxTable, physicalTableName } from "../../../app/handlers/table.ts";
import type { ServerInternals } from "../../../app/server/server.ts";
import { accountOf, endpointOf } from "../../../aws/adapters/adapters.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import { dynamoAsideStore } from "../../../aws/stores/aside-store.ts";
import { dynamoClaimStore } from "../../../aws/stores/claim-store.ts";
import { dynamoOutbox } from "../../../aws/stores/outbox-store.ts";
import { dynamoSteps } from "../../../aws/stores/step-store.ts";
import { embeddedDirectory, type Variables } from "../../../base/process/environment.ts";
import { servedFrom } from "../../../embedded/service/data-directory.ts";
import type { TraceStores } from "./tables.ts";

export interface OpenedTables {
  readonly stores: TraceStores;
  close(): void;
}

export function developmentDirectory(
  { environment }: Pick<ServerInternals, "environment">,
  env: Variables,
): string | undefined {
  return environment === "development" ? embeddedDirectory(env, environment) : undefined;
}

/**
 * Uses the endpoint that the options or the environment name; otherwise, in development, the process
 * that runs on the data directory, and elsewhere AWS. Creates no table.
 *
 * @throws Error if no process runs on the data directory.
 */
export async function openTables(server: ServerInternals, env: Variables): Promise<OpenedTables> {
  const { options } = server;
  const endpoint = options.dynamodb?.endpoint ?? endpointOf(env, "DYNAMODB");
  const directory = endpoint === undefined ? developmentDirectory(server, env) : undefined;
  const place = directory === undefined ? { endpoint, ...accountOf(env) } : placeOf(directory);
  const database = await openDatabase(place);
  const named = (table: typeof onceTable) =>
    physicalTableName(table.name, options.dynamodb?.prefix ?? "keelson", env);
  const [once, outbox] = [named(onceTable), named(outboxTable)];
  return {
    stores: {
      outbox: dynamoOutbox(database, outbox),
      aside: dynamoAsideStore(database, outbox),
      claims: dynamoClaimStore(database, once),
      steps: dynamoSteps(database, once),
    },
    close: () => database.destroy(),
  };
}

function placeOf(directory: string) {
  const served = servedFrom(directory);
  if (served === undefined) throw new Error(`no process runs on ${directory}`);
  const { port, region } = served;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    region,
    credentials: { accessKeyId: "embedded", secretAccessKey: "embedded" },
  };
}
