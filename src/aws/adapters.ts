import type { Variables } from "../app/environment.ts";
import type { Adapters, Runtime } from "../app/runtime.ts";
import { configTable, onceTable } from "../app/table.ts";
import { dynamoClaimStore } from "./claim-store.ts";
import { dynamoConfigRows } from "./config-rows.ts";
import { dynamoConfigStore } from "./config-store.ts";
import { openDatabase } from "./dynamodb.ts";
import { requestDatabases } from "./request-database.ts";
import { openParameters } from "./ssm.ts";

/** Opens the adapters of an AWS account, or of the emulator that the environment names. */
export async function openAwsAdapters(runtime: Runtime, variables: Variables): Promise<Adapters> {
  const { dynamodb, ssm, keyRing } = runtime.server.options;
  const account = accountOf(variables);
  const database = await openDatabase({ endpoint: dynamodb?.endpoint ?? dynamoDbEndpoint(variables), ...account });
  const needsParameters = ssm !== undefined || keyRing !== undefined;
  const parameters = needsParameters ? await openParameters({ endpoint: ssmEndpoint(variables), ...account }) : undefined;
  return {
    database,
    databaseFor: requestDatabases(database),
    configRows: dynamoConfigRows(database, runtime.tableName(configTable.name)),
    configStore: dynamoConfigStore(database, runtime.tableName(configTable.name)),
    claims: dynamoClaimStore(database, runtime.tableName(onceTable.name)),
    parameters,
    close: async () => {
      database.destroy();
      parameters?.close();
    },
  };
}

/** Region and credentials of the environment. */
export function accountOf(variables: Variables) {
  return { region: variables["AWS_REGION"] || variables["AWS_DEFAULT_REGION"] || undefined, ...credentialsOf(variables) };
}

/** The endpoint that the environment names, as the SDK reads it; `undefined` for AWS's own. */
export function dynamoDbEndpoint(variables: Variables): string | undefined {
  return variables["AWS_ENDPOINT_URL_DYNAMODB"] || variables["AWS_ENDPOINT_URL"] || undefined;
}

/** The same for SSM. */
export function ssmEndpoint(variables: Variables): string | undefined {
  return variables["AWS_ENDPOINT_URL_SSM"] || variables["AWS_ENDPOINT_URL"] || undefined;
}

/** Static credentials of variables other than the process's own, which the SDK reads itself. */
function credentialsOf(variables: Variables) {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = variables;
  if (variables === process.env || !accessKeyId || !secretAccessKey) return {};
  return { credentials: { accessKeyId, secretAccessKey } };
}
