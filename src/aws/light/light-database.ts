import type { Variables } from "../../base/process/environment.ts";
import type { Database } from "../../base/types/database.ts";
import type { ClientOptions } from "../clients/client-options.ts";
import { createDatabase, findSdk, openDatabase } from "../clients/dynamodb.ts";
import { deferDatabase } from "./deferred-database.ts";
import { createLeanRows, type LeanRows } from "./lean-rows.ts";
import { leanSettings } from "./lean-settings.ts";

export type EarlyRows = Pick<LeanRows, "read" | "put">;

interface DatabaseAccess {
  readonly database: Database;
  readonly rows?: EarlyRows;
  /** Loads the SDK. Absent if it is already loaded. */
  readonly load?: () => Promise<unknown>;
  /** Closes the database and the early calls. If absent, the caller closes the database. */
  readonly close?: () => void;
}

export function readsWithoutSdk(variables: Variables): boolean {
  return leanSettings(variables) !== undefined;
}

/**
 * With `isEarly`, the SDK is loaded only when a call needs it, unless only the SDK knows how to
 * reach DynamoDB or it cannot be loaded synchronously.
 */
export async function accessDatabase(
  variables: Variables,
  options: ClientOptions,
  isEarly: boolean,
): Promise<DatabaseAccess> {
  const settings = isEarly ? leanSettings(variables) : undefined;
  const loadNow = settings && findSdk();
  if (settings === undefined || loadNow === undefined)
    return { database: await openDatabase(options) };
  const { isAsked, ...deferred } = deferDatabase({
    later: async () => {
      const sdk = await import("../clients/dynamodb-sdk.ts");
      return () => createDatabase(sdk, options);
    },
    now: () => createDatabase(loadNow(), options),
  });
  const rows = createLeanRows(settings);
  return {
    ...deferred,
    // Once the SDK is loaded, it makes these calls as well.
    rows: {
      read: async (...given) => (isAsked() ? undefined : rows.read(...given)),
      put: async (input) => (isAsked() ? undefined : rows.put(input)),
    },
    close: () => {
      rows.close();
      deferred.close();
    },
  };
}
