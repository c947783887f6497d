import type { ConfigScope } from "../../parts/config/declare/key.ts";
import { systemPartition, tenantPartition, userPartition } from "../../parts/config/read/rows.ts";
import type { TestClock } from "./test-clock.ts";

/** Configuration row, written without validation. */
export interface TestRow {
  readonly scope: ConfigScope;
  readonly tenantId?: string;
  readonly userId?: string;
  /** Identifier of the configuration key. */
  readonly key: string;
  readonly value: unknown;
  /** Default 1. */
  readonly version?: number;
  /** Expiry, in seconds since the epoch. */
  readonly expiresAt?: number;
  readonly deleted?: true;
}

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
