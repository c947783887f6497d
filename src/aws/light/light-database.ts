import type { Variables } from "../../base/process/environment.ts";
import type { ClientOptions } from "../clients/client-options.ts";
import { createDatabase } from "../clients/dynamodb.ts";
import { findSdk } from "../clients/sdk-now.ts";
import { deferDatabase } from "./deferred-database.ts";
import { createLeanRows, type LeanRows } from "./lean-rows.ts";
import { leanSettings } from "./lean-settings.ts";

/** Returns `undefined` if only the SDK knows how to reach DynamoDB or cannot load synchronously. */
export function openLightDatabase(variables: Variables, options: ClientOptions) {
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
