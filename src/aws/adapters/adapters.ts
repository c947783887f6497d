import { databaseWith, requestDatabases } from "../../app/ctx/request-database.ts";
import { configTable, keptEventsTable, onceTable, outboxTable } from "../../app/handlers/table.ts";
import type { Adapters } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Variables } from "../../base/process/environment.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import { openParameters } from "../clients/ssm.ts";
import { startDatabase } from "../light/light-database.ts";
import { dynamoClaimStore } from "../stores/claim-store.ts";
import { dynamoConfigRows } from "../stores/config-rows.ts";
import { dynamoConfigStore } from "../stores/config-store.ts";
import { dynamoOutbox } from "../stores/outbox-store.ts";

/**
 * Opens the adapters of an AWS account, or of the emulator that the environment names. With `mode`
 * set to `create`, an emulator's missing bus and queues are created.
 *
 * @param isEarly - whether to open them before the SDK is loaded, if possible.
 */
export async function openAwsAdapters(
  runtime: Runtime,
  variables: Variables,
  mode: "create" | "check" = "check",
  isEarly = false,
): Promise<Adapters> {
  const { dynamodb, ssm, keyRing } = runtime.server.options;
  const account = accountOf(variables);
  const { metrics } = runtime;
  const measured = metrics && (await import("./measured-calls.ts"));
  const measure =
    measured &&
    ((client: Parameters<typeof measured.measureCalls>[0]) =>
      measured.measureCalls(client, metrics));
  const place = {
    endpoint: dynamodb?.endpoint ?? endpointOf(variables, "DYNAMODB"),
    ...account,
    measure,
  };
  const started = await startDatabase(variables, place, isEarly);
  const { database } = started;
  const needsParameters = ssm !== undefined || keyRing !== undefined;
  const parameters = needsParameters
    ? await openParameters({ endpoint: endpointOf(variables, "SSM"), ...account })
    : undefined;
  const messaging = lazyMessaging(runtime, variables, mode);
  const { wall, databaseFor, databaseAcrossTenants, committing, sessions } = await openWall(
    runtime,
    { database, variables, isChecked: mode === "check" },
  );
  const configName = runtime.tableName(configTable.name);
  const lean = measured ? measured.measuredRows(started.rows, metrics) : started.rows;
  const rows = dynamoConfigRows(database, configName, { lean });
  const { registry } = runtime.server;
  const isRenaming = [...registry.configKeys.values()].some(
    ({ definition }) => definition.formerly !== undefined,
  );
  const former = isRenaming
    ? (await import("../stores/former-rows.ts")).dynamoFormerRows(configName, registry)
    : undefined;
  return {
    database,
    databaseFor,
    databaseAcrossTenants,
    wall,
    configRows: former?.reader(rows) ?? rows,
    configStore: dynamoConfigStore(database, configName, { former }),
    claims: dynamoClaimStore(database, runtime.tableName(onceTable.name), { committing }),
    outbox: dynamoOutbox(database, runtime.tableName(outboxTable.name)),
    ...lazyStores(runtime, database),
    messaging,
    parameters,
    ...(started.load && { load: started.load }),
    close: async () => {
      sessions?.close();
      started.close();
      parameters?.close();
      // If opening failed, there is nothing to close.
      (await messaging.opening?.catch(() => undefined))?.close();
    },
  };
}

function lazyMessaging(
  runtime: Runtime,
  variables: Variables,
  mode: "create" | "check",
): Adapters["messaging"] {
  const sqsEndpoint = endpointOf(variables, "SQS");
  const eventBridgeEndpoint = endpointOf(variables, "EVENTBRIDGE");
  // Creates missing resources only in an emulator: a local table does not imply that the queues are
  // local as well.
  const isEmulated =
    mode === "create" && sqsEndpoint !== undefined && eventBridgeEndpoint !== undefined;
  return lazy(async () => {
    const { messagingNames, openMessaging } = await import("../messaging/messaging.ts");
    return openMessaging(runtime, {
      ...accountOf(variables),
      ...{ sqsEndpoint, eventBridgeEndpoint },
      names: messagingNames(runtime.server.options.dynamodb?.prefix ?? "keelson", variables),
      mode: isEmulated ? "create" : "check",
    });
  });
}

/** Opens what keeps tenants apart: the databases of requests, and the sessions of tenants. */
async function openWall(
  runtime: Runtime,
  given: {
    readonly database: Database;
    readonly variables: Variables;
    readonly isChecked: boolean;
  },
) {
  const { database, variables } = given;
  const tables = walledTables(runtime);
  const sessions =
    runtime.server.options.isolation === undefined || tables.length === 0
      ? undefined
      : (await import("../sessions/tenant-sessions.ts")).openTenantSessions(runtime, {
          ...given,
          ...{ endpoint: endpointOf(variables, "STS"), region: accountOf(variables).region },
        });
  // Loaded only if there are walled tables.
  const tenantWall =
    tables.length === 0
      ? undefined
      : (await import("../../parts/wall/wall.ts")).createWall(tables, sessions, runtime.metrics);
  const inAccount = tenantWall?.account;
  // Checks `uses` in tests and development. In production, the IAM roles enforce it.
  const uses =
    runtime.environment === "production"
      ? undefined
      : await import("../../app/runtime/table-uses.ts");
  const wall = uses?.withUses(runtime, tenantWall) ?? tenantWall;
  const across = inAccount && { stackFor: inAccount.stackAcross };
  return {
    wall,
    databaseFor: requestDatabases(database, wall),
    databaseAcrossTenants: requestDatabases(database, uses?.withUses(runtime, across) ?? across),
    committing:
      inAccount &&
      ((tenantId: string) => databaseWith(database, (stack) => inAccount.stackOf(stack, tenantId))),
    sessions,
  };
}

/** Returns the stores that are loaded with their first use. */
function lazyStores({ tableName, clock }: Runtime, database: Database) {
  const [once, outbox, kept] = [onceTable, outboxTable, keptEventsTable].map(({ name }) =>
    tableName(name),
  ) as [string, string, string]; // safe: of three tables
  return {
    schedules: lazy(async () =>
      (await import("../stores/schedule-store.ts")).dynamoSchedules(database, once),
    ),
    steps: lazy(async () => (await import("../stores/step-store.ts")).dynamoSteps(database, once)),
    dueJobs: lazy(async () =>
      (await import("../stores/due-store.ts")).dynamoDueJobs(database, outbox),
    ),
    keptEvents: lazy(async () =>
      (await import("../stores/kept-event-store.ts")).dynamoKeptEvents(database, kept, clock),
    ),
    projections: lazy(async () =>
      (await import("../stores/projection-store.ts")).dynamoProjections(database, kept, clock),
    ),
  };
}

/** Returns the tables whose rows start with their tenant, by physical name. */
function walledTables({ server, tableName }: Runtime) {
  return [...server.registry.tables.values()].flatMap((table) =>
    table.tenant === true ? [{ ...table, tableName: tableName(table.name) }] : [],
  );
}

export function accountOf(variables: Variables) {
  return {
    region: variables["AWS_REGION"] || variables["AWS_DEFAULT_REGION"] || undefined,
    ...credentialsOf(variables),
  };
}

/** Environment variable with the endpoint of each service. */
const endpointVariables = {
  DYNAMODB: "AWS_ENDPOINT_URL_DYNAMODB",
  SSM: "AWS_ENDPOINT_URL_SSM",
  SQS: "AWS_ENDPOINT_URL_SQS",
  STS: "AWS_ENDPOINT_URL_STS",
  EVENTBRIDGE: "AWS_ENDPOINT_URL_EVENTBRIDGE",
} as const;

/**
 * Returns the endpoint that the environment names for a service, with the SDK's precedence;
 * `undefined` for AWS's own endpoint.
 */
export function endpointOf(
  variables: Variables,
  service: keyof typeof endpointVariables,
): string | undefined {
  return variables[endpointVariables[service]] || variables["AWS_ENDPOINT_URL"] || undefined;
}

/**
 * Returns static credentials, unless the variables are the process's own, which the SDK reads
 * itself.
 */
function credentialsOf(variables: Variables) {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = variables;
  if (variables === process.env || !accessKeyId || !secretAccessKey) return {};
  return { credentials: { accessKeyId, secretAccessKey } };
}
