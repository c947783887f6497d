import { configTable, physicalTableName } from "../../../app/handlers/table.ts";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import type { ParameterReader } from "../../../app/runtime/adapters.ts";
import { readKeyRing } from "../../../app/server/boot-parameters.ts";
import { openParameters } from "../../../aws/clients/ssm.ts";
import { allConfigRows, dynamoConfigRows } from "../../../aws/stores/config-rows.ts";
import { type Clock, systemClock } from "../../../base/process/clock.ts";
import { developmentKeyRing } from "../../../base/secrets/key-ring.ts";
import { createSecrets } from "../../../base/secrets/secrets.ts";
import type { AppOverrides } from "../../../parts/config/declare/app-overrides.ts";
import { parameterOverrides } from "../../../parts/config/declare/parameter-overrides.ts";
import { createRowCipher } from "../../../parts/config/read/row-cipher.ts";
import type { LockedKey } from "../../contract/locked-keys.ts";
import { reportStored, type StoredReport } from "../../contract/stored-report.ts";
import type { CommandContext } from "../setup/define-command.ts";
import { awsPlace, withDatabase } from "../setup/its-server.ts";
import { rowsRead } from "../setup/shown-scan.ts";

interface StoredRowsOptions {
  readonly server: DeclaredServer;
  /**
   * Keys of the contract's lock. If a key was encrypted there, the report hides its value as
   * `(secret)`.
   */
  readonly locked: readonly LockedKey[];
  readonly env: CommandContext["env"];
  readonly clock?: Clock;
  readonly progress?: CommandContext["progress"];
  readonly limit?: number;
}

/**
 * Reports stored configuration that does not fit its declaration. Decrypts secrets, but never shows
 * them.
 *
 * @throws Error if the table, or the parameters that the server names, cannot be read.
 */
export async function storedRows(options: StoredRowsOptions): Promise<StoredReport> {
  const { server, locked, env, clock = systemClock, progress = () => {}, limit = 1_000 } = options;
  const { dynamodb } = server.options;
  const tableName = physicalTableName(configTable.name, dynamodb?.prefix ?? "keelson", env);
  const place = awsPlace(env, "DYNAMODB", dynamodb?.endpoint);
  try {
    return await withDatabase(place, async (database) => {
      const { overrides, keyRing } = await parametersOf(server, env);
      const secrets = createSecrets({ clock });
      secrets.begin(keyRing, clock.now());
      return reportStored({
        registry: server.registry,
        pages: allConfigRows(database, tableName),
        reader: dynamoConfigRows(database, tableName),
        overrides,
        openRow: createRowCipher(secrets, () => tableName).openRow,
        wereEncrypted: new Set(locked.flatMap(({ id, encrypted }) => (encrypted ? [id] : []))),
        nowMs: clock.now(),
        limit,
        onPage: (scanned) => progress(rowsRead(tableName, scanned)),
      });
    });
  } finally {
    progress("");
  }
}

async function parametersOf(server: DeclaredServer, env: CommandContext["env"]) {
  const { config: overrides = {}, ssm, keyRing } = server.options;
  // As in a server: production never uses the development secret.
  const secret =
    server.environment === "production" ? undefined : env["KEELSON_AUTH_SECRET"] || undefined;
  if (ssm === undefined && keyRing === undefined)
    return { overrides, keyRing: secret === undefined ? undefined : developmentKeyRing(secret) };
  const reader = await openParameters(awsPlace(env, "SSM"));
  try {
    const below = ssm && (await overridesBelow(reader, server, ssm.path));
    // A ring that cannot be read leaves secrets only counted.
    const read =
      keyRing && (await readKeyRing(reader, keyRing.parameter, secret).catch(() => undefined));
    const ring = read !== undefined && "keyRing" in read ? read.keyRing : undefined;
    return { overrides: { ...overrides, ...below }, keyRing: ring };
  } finally {
    reader.close();
  }
}

async function overridesBelow(
  reader: ParameterReader,
  { registry }: DeclaredServer,
  path: string,
): Promise<AppOverrides> {
  const { overrides, problems } = parameterOverrides(registry, path, await reader.read(path));
  if (problems.length === 0) return overrides;
  const told = problems.map(({ key, message }) => `${key}: ${message}`).join("; ");
  throw new Error(`the parameters below ${path} are not valid: ${told}`);
}
