import type { ConfigScope } from "../../parts/config/declare/key.ts";
import { systemPartition, tenantPartition, userPartition } from "../../parts/config/read/rows.ts";
import type { TestClock } from "./test-clock.ts";

/** A configuration row, written unchecked. */
export interface TestRow {
  readonly scope: ConfigScope;
  readonly tenantId?: string;
  readonly userId?: string;
  /** The key identifier. */
  readonly key: string;
  readonly value: unknown;
  /** Default 1. */
  readonly version?: number;
  /** Epoch seconds. */
  readonly expiresAt?: number;
  readonly deleted?: true;
}

/** The item of the configuration table that a row is. */
export function itemOf(
  { scope, tenantId, userId, key, value, version = 1, expiresAt, deleted }: TestRow,
  clock: TestClock,
) {
  return {
    pk: partitionOf(scope, tenantId, userId),
    sk: key,
    value,
    version,
    updatedAt: new Date(clock.now()).toISOString(),
    updatedBy: "test",
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(deleted === undefined ? {} : { deleted }),
  };
}

function partitionOf(
  scope: ConfigScope,
  tenantId: string | undefined,
  userId: string | undefined,
): string {
  if (scope === "system") return systemPartition();
  if (tenantId === undefined)
    throw new TypeError(`app.rows.put: a row of scope ${scope} needs a tenantId`);
  if (scope === "tenant") return tenantPartition(tenantId);
  if (userId === undefined) throw new TypeError("app.rows.put: a row of scope user needs a userId");
  return userPartition(tenantId, userId);
}
