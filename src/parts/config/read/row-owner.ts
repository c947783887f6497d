import type { ConfigScope } from "../declare/key.ts";
import { pathFrom, type RowLevel, systemPartition, tenantPartition } from "./rows.ts";

export interface PartitionOwner {
  readonly scope: ConfigScope;
  /** Tenant ID, or its hash if it is too long for a key; `undefined` for rows of all tenants. */
  readonly tenantId: string | undefined;
  /** This partition and the broader ones, the narrowest first. */
  readonly levels: readonly RowLevel[];
}

const ofTenants = tenantPartition("");

/** Returns the owner of a partition's rows; `undefined` for other partitions, such as history. */
export function ownerOf(partition: string): PartitionOwner | undefined {
  const isRows = partition === systemPartition() || /^config#(?:tenant|user)#./s.test(partition);
  if (!isRows) return undefined;
  const path = pathFrom(partition);
  const scopes = (["user", "tenant", "system"] as const).slice(-path.length);
  const tenant = path.at(-2)?.partition.slice(ofTenants.length);
  return {
    scope: scopes[0] as ConfigScope, // the cast is safe: a path has one to three partitions
    tenantId: tenant === undefined ? undefined : unescaped(tenant),
    // The cast is safe: `scopes` is as long as `path`.
    levels: path.map((one, index) => ({ ...one, source: `${scopes[index] as ConfigScope}-row` })),
  };
}

function unescaped(text: string): string {
  return text.replace(/%(?:u([0-9A-F]{4})|25|23)/g, (escaped, surrogate: string | undefined) =>
    surrogate === undefined
      ? decodeURIComponent(escaped)
      : String.fromCharCode(Number.parseInt(surrogate, 16)),
  );
}
