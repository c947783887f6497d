import type { Variables } from "../../base/process/environment.ts";
import type { Database } from "../../base/types/database.ts";
import type { ClientOptions } from "../clients/client-options.ts";
import { createDatabase, openDatabase } from "../clients/dynamodb.ts";
import { findSdk } from "../clients/sdk-now.ts";
import { deferDatabase } from "./deferred-database.ts";
import { createLeanRows, type LeanRows } from "./lean-rows.ts";
import { leanSettings } from "./lean-settings.ts";

/** Database of a server, and what reads its configuration before the SDK is loaded. */
export interface StartedDatabase {
  readonly database: Database;
  /** Reads configuration rows. Absent if the SDK reads them. */
  readonly rows?: Pick<LeanRows, "read">;
  /** Loads the SDK. Absent if it is loaded. */
  load?(): Promise<unknown>;
  close(): void;
}

/** Reports whether a function can read configuration before it loads the SDK. */
export function readsWithoutSdk(variables: Variables): boolean {
  return leanSettings(variables) !== undefined;
}

/**
 * Opens the database.
 *
 * @param isEarly - whether to open it before the SDK is loaded, if possible.
 */
export async function startDatabase(
  variables: Variables,
  options: ClientOptions,
  isEarly: boolean,
): Promise<StartedDatabase> {
  const early = isEarly ? openEarly(variables, options) : undefined;
  if (early !== undefined) return early;
  const database = await openDatabase(options);
  return { database, close: () => database.destroy() };
}

/** Returns `undefined` if only the SDK knows how to reach DynamoDB or cannot load synchronously. */
function openEarly(variables: Variables, options: ClientOptions): StartedDatabase | undefined {
  const settings = leanSettings(variables);
  const loadNow = findSdk();
  if (settings === undefined || loadNow === undefined) return undefined;
  const deferred = deferDatabase({
    later: async () => {
      const sdk = await import("../clients/dynamodb-sdk.ts");
      return () => createDatabase(sdk, options);
    },
    now: () => createDatabase(loadNow(), options),
  });
  const rows = createLeanRows(settings);
  return {
    ...deferred,
    // Once the SDK is loaded, it makes the reads as well.
    rows: {
      read: async (...given: Parameters<LeanRows["read"]>) =>
        deferred.isAsked() ? undefined : rows.read(...given),
    },
    close: () => {
      rows.close();
      deferred.close();
    },
  };
}
