import { databaseWith, requestDatabases } from "../../app/ctx/request-database.ts";
import { configTable, keptEventsTable, onceTable, outboxTable } from "../../app/handlers/table.ts";
import type { Adapters } from "../../app/runtime/adapters.ts";
import type { AdaptedRuntime } from "../../app/server/runtime-options.ts";
import type { Variables } from "../../base/process/environment.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import type { ClientOptions } from "../clients/client-options.ts";
import { openParameters } from "../clients/ssm.ts";
import { accessDatabase } from "../light/light-database.ts";
import { dynamoClaimStore } from "../stores/claim-store.ts";
import { dynamoConfigRows } from "../stores/config-rows.ts";
import { dynamoConfigStore } from "../stores/config-store.ts";
import { dynamoDueJobs, dynamoOutbox } from "../stores/outbox-store.ts";

/**
 * Opens the adapters of an AWS account, or of the emulator that the environment names, whose
 * missing bus and queues `create` creates. `isEarly` defers loading the SDK, if possible.
 */
export async function openAwsAdapters(
  runtime: AdaptedRuntime,
  variables: Variables,
  mode: "create" | "check" = "check",
  isEarly = false,
): Promise<Adapters> {
  const { metrics, server } = runtime;
  const { dynamodb, log, ssm, keyRing } = server.options;
  const account = accountOf(variables);
  const measured = metrics && (await import("./measured-calls.ts")).measureCalls(metrics);
  const counted = log?.cost ? (await import("./counted-costs.ts")).countCosts : undefined;
  const endpoint = dynamodb?.endpoint ?? endpointOf(variables, "DYNAMODB");
  const measure: ClientOptions["measure"] = (client) => {
    measured?.client(client);
    counted?.(client);
  };
  const place = { endpoint, ...account, measure };
  // Calls without the SDK do not ask for the units that they consume.
  const canBeEarly = isEarly && counted === undefined;
  const { database, rows: lean, load, close } = await accessDatabase(variables, place, canBeEarly);
  const early = lean && measured ? measured.rows(lean) : lean;
  const parameters =
    ssm === undefined && keyRing === undefined
      ? undefined
      : await openParameters({ endpoint: endpointOf(variables, "SSM"), ...account });
  const messaging = lazyMessaging(runtime, variables, mode, counted);
  const { wall, databaseFor, databaseAcrossTenants, committing, sessions } = await openWall(
    runtime,
    { database, variables, isChecked: mode === "check" },
  );
  const configName = runtime.tableName(configTable.name);
  const rows = dynamoConfigRows(database, configName, { early });
  const keys = [...server.registry.configKeys.values()];
  const former = keys.some(({ definition }) => definition.formerly !== undefined)
    ? (await import("../stores/former-rows.ts")).dynamoFormerRows(configName, server.registry)
    : undefined;
  return {
    database,
    databaseFor,
    databaseAcrossTenants,
    wall,
    configRows: former?.reader(rows) ?? rows,
    configStore: dynamoConfigStore(database, configName, { former }),
    claims: dynamoClaimStore(database, runtime.tableName(onceTable.name), { committing, early }),
    outbox: dynamoOutbox(database, runtime.tableName(outboxTable.name)),
    ...lazyStores(runtime, database),
    messaging,
    parameters,
    ...(load && { load }),
    close: async () => {
      sessions?.close();
      // As `closeDatabase` does: `destroy` of a document client closes nothing.
      if (close === undefined) database.config.requestHandler.destroy?.();
      else close();
      parameters?.close();
      // If opening failed, there is nothing to close.
      (await messaging.opening?.catch(() => undefined))?.close();
    },
  };
}

function lazyMessaging(
  runtime: Pick<AdaptedRuntime, "server" | "runs">,
  variables: Variables,
  mode: "create" | "check",
  counted: ClientOptions["measure"],
): Adapters["messaging"] {
  const sqsEndpoint = endpointOf(variables, "SQS");
  const eventBridgeEndpoint = endpointOf(variables, "EVENTBRIDGE");
  // A local table does not imply that the queues are local as well.
  const isEmulated =
    mode === "create" && sqsEndpoint !== undefined && eventBridgeEndpoint !== undefined;
  return lazy(async () => {
    const [{ openMessaging }, { messagingNames }] = await Promise.all([
      import("../messaging/messaging.ts"),
      import("../messaging/names.ts"),
    ]);
    const prefix = runtime.server.options.dynamodb?.prefix ?? "keelson";
    const messaging = await openMessaging(runtime, {
      registry: runtime.server.registry,
      ...accountOf(variables),
      ...{ sqsEndpoint, eventBridgeEndpoint },
      // An emulator has no older version that would have to read the jobs.
      names: messagingNames(prefix, variables, isEmulated ? "send" : "off"),
      mode: isEmulated ? "create" : "check",
    });
    if (counted !== undefined) messaging.clients.forEach(counted);
    return messaging;
  });
}

async function openWall(
  runtime: AdaptedRuntime,
  given: { database: Database; variables: Variables; isChecked: boolean },
) {
  const { database, variables } = given;
  const tables = walledTables(runtime);
  const place = { endpoint: endpointOf(variables, "STS"), region: accountOf(variables).region };
  const sessions =
    runtime.server.options.isolation === undefined || tables.length === 0
      ? undefined
      : (await import("../sessions/tenant-sessions.ts")).openTenantSessions(runtime, {
          ...given,
          ...place,
        });
  const tenantWall =
    tables.length === 0
      ? undefined
      : (await import("../../parts/wall/wall.ts")).createWall(tables, sessions, runtime.metrics);
  const inAccount = tenantWall?.account;
  // Outside production, keelson checks `uses`; in production, the IAM roles enforce them.
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

/** Stores that keep facts in memory. The race kit opens them again for each process. */
export function lazyStores(
  { tableName, clock, log }: Pick<AdaptedRuntime, "tableName" | "clock" | "log">,
  database: Database,
) {
  const [once, kept] = [tableName(onceTable.name), tableName(keptEventsTable.name)];
  return {
    schedules: lazy(async () =>
      (await import("../stores/schedule-store.ts")).dynamoSchedules(database, once),
    ),
    steps: lazy(async () => (await import("../stores/step-store.ts")).dynamoSteps(database, once)),
    apiKeys: lazy(async () =>
      (await import("../stores/api-key-store.ts")).dynamoApiKeys(database, once),
    ),
    tenants: lazy(async () =>
      (await import("../stores/tenant-store.ts")).dynamoTenants(database, once),
    ),
    rates: lazy(async () => (await import("../stores/rate-store.ts")).dynamoRates(database, once)),
    slots: lazy(async () =>
      (await import("../stores/slot-store.ts")).openSlots(database, once, { clock, log }),
    ),
    quotas: lazy(async () =>
      (await import("../stores/quota-store.ts")).dynamoQuotas(database, once),
    ),
    dueJobs: lazy(async () => dynamoDueJobs(database, tableName(outboxTable.name))),
    equalJobs: lazy(async () =>
      (await import("../stores/equal-job-store.ts")).dynamoEqualJobs(database, once),
    ),
    keptEvents: lazy(async () =>
      (await import("../stores/kept-event-store.ts")).dynamoKeptEvents(database, kept, clock),
    ),
    projections: lazy(async () =>
      (await import("../stores/projection-store.ts")).dynamoProjections(database, kept, clock),
    ),
  };
}

/** Tables whose rows start with their tenant. */
function walledTables({ server, tableName }: Pick<AdaptedRuntime, "server" | "tableName">) {
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

/** With the SDK's precedence; `undefined` for AWS's own. */
export function endpointOf(
  variables: Variables,
  service: "DYNAMODB" | "SSM" | "SQS" | "STS" | "EVENTBRIDGE",
): string | undefined {
  return variables[`AWS_ENDPOINT_URL_${service}`] || variables["AWS_ENDPOINT_URL"] || undefined;
}

/** Returns an empty object for the process's own variables, which the SDK reads itself. */
function credentialsOf(variables: Variables) {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = variables;
  if (variables === process.env || !accessKeyId || !secretAccessKey) return {};
  return { credentials: { accessKeyId, secretAccessKey } };
}
