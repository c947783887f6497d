import { onceTable, outboxTable, physicalTableName } from "../../../app/handlers/table.ts";
import type { ServerInternals } from "../../../app/server/server.ts";
import { dynamoAsideStore } from "../../../aws/stores/aside-store.ts";
import { dynamoClaimStore } from "../../../aws/stores/claim-store.ts";
import { dynamoOutbox } from "../../../aws/stores/outbox-store.ts";
import { dynamoSteps } from "../../../aws/stores/step-store.ts";
import { embeddedDirectory, type Variables } from "../../../base/process/environment.ts";
import { servedFrom } from "../../../embedded/service/data-directory.ts";
import { awsPlace, withDatabase } from "../setup/its-server.ts";
import type { TraceStores } from "./tables.ts";

export function developmentDirectory(
  { environment }: Pick<ServerInternals, "environment">,
  env: Variables,
): string | undefined {
  return environment === "development" ? embeddedDirectory(env, environment) : undefined;
}

/**
 * Runs `work` on the server's tables: at the endpoint of the options or the environment; otherwise,
 * in development, in the process that runs on the data directory, or else in AWS. Creates no table.
 *
 * @throws Error if no process runs on the data directory.
 */
export async function withTables<Result>(
  server: ServerInternals,
  env: Variables,
  work: (stores: TraceStores) => Promise<Result>,
): Promise<Result> {
  const { endpoint, prefix = "keelson" } = server.options.dynamodb ?? {};
  const place = awsPlace(env, "DYNAMODB", endpoint);
  const directory = place.endpoint === undefined ? developmentDirectory(server, env) : undefined;
  const [once, outbox] = [
    physicalTableName(onceTable.name, prefix, env),
    physicalTableName(outboxTable.name, prefix, env),
  ];
  return withDatabase(directory === undefined ? place : placeOf(directory), (database) =>
    work({
      outbox: dynamoOutbox(database, outbox),
      aside: dynamoAsideStore(database, outbox),
      claims: dynamoClaimStore(database, once),
      steps: dynamoSteps(database, once),
    }),
  );
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
