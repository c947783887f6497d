import { AccessDeniedError } from "../../base/errors/errors.ts";
import { isRecord } from "../../base/errors/option-table.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import { defined } from "../../base/types/defined.ts";
import { createCommandCheck, type Refusal } from "./check-command.ts";
import { acrossTag, type Isolation, type OpenSession, sessionOpener } from "./isolation.ts";
import type { SessionTag } from "./session-credentials.ts";
import { encodeTenant, tenantPrefix } from "./tenant-prefix.ts";
import { type Stack, walledStack } from "./walled-stack.ts";
import { tableOf, type WalledTable } from "./walled-table.ts";

export interface WallCaller {
  readonly tenantId: string | undefined;
  readonly log: Pick<Logger, "error">;
  /** The running handler, which may be a query that another handler calls. */
  readonly handler?: string | undefined;
  /** Throws for malformed items of `ctx.commit`, which are a mistake and not an attack. */
  readonly assertActions?: (items: readonly never[]) => void;
}

export type Wall = ReturnType<typeof createWall>;

interface DeclaredTenantTable {
  readonly name: string;
  /** Physical name or ARN. */
  readonly tableName: string;
  readonly partitionKey: string;
  readonly indexes: readonly { readonly name: string; readonly partitionKey: string }[];
}

/** Keeps commands away from other tenants' rows. With `isolation`, AWS credentials do so, too. */
export function createWall(
  declared: readonly DeclaredTenantTable[],
  isolation?: Isolation,
  metrics?: Metrics,
) {
  const tables = byPhysicalName(declared);
  const check = createCommandCheck(tables);
  const opener = (tag: SessionTag): OpenSession | undefined =>
    isolation && sessionOpener(isolation, (table) => tables.has(table), tag);
  const openerOf = (tenantId: string) => opener({ key: "tenant", value: encodeTenant(tenantId) });
  return {
    /** A command that reaches beyond the caller's tenant fails and is never sent. */
    stackFor: (stack: Stack, caller: WallCaller): Stack => {
      const { tenantId } = caller;
      const prefix = prefixOf(caller);
      return walledStack(stack, {
        check: (operation, input) => {
          const refusal = check(operation, input, prefix);
          return refusal === undefined ? undefined : refused(caller, operation, refusal, metrics);
        },
        open: tenantId ? openerOf(tenantId) : undefined,
      });
    },
    /**
     * Returns a copy, so that later changes by the handler are not committed.
     *
     * @throws AccessDeniedError for an item outside the tenant's rows.
     */
    checkItems: <Items>(items: Items, caller: WallCaller): Items => {
      // `ctx.commit` itself rejects anything but a list, with its own message.
      if (!Array.isArray(items)) return items;
      const copies = items.map((item) => copyOf(item, 3));
      const refusal = check("TransactWriteItems", { TransactItems: copies }, prefixOf(caller));
      if (refusal !== undefined) {
        caller.assertActions?.(items as never[]); // safe: it takes any list
        throw refused(caller, "ctx.commit", refusal, metrics);
      }
      return copies as typeof items; // the cast is safe: each copy has the members of its original
    },
    /** Middlewares that do not check commands, but sign them with session credentials. */
    account: isolation && {
      stackAcross: (stack: Stack): Stack =>
        walledStack(stack, { check: unchecked, open: opener(acrossTag) }),
      stackOf: (stack: Stack, tenantId: string): Stack =>
        walledStack(stack, { check: unchecked, open: openerOf(tenantId) }),
    },
  };
}

const unchecked = () => undefined;

/** Merges tables that share one physical table, which then has the indexes of both. */
function byPhysicalName(
  declared: readonly DeclaredTenantTable[],
): ReadonlyMap<string, WalledTable> {
  const tables = new Map<string, WalledTable>();
  for (const { name, tableName, partitionKey, indexes } of declared) {
    const physical = tableOf(tableName) ?? tableName;
    const known = tables.get(physical);
    const partitions = new Map([
      ...(known?.indexes ?? []),
      ...indexes.map((index) => [index.name, index.partitionKey] as const),
    ]);
    const led = [...new Set([...(known?.led ?? []), partitionKey, ...partitions.values()])];
    tables.set(physical, { name: known?.name ?? name, partitionKey, indexes: partitions, led });
  }
  return tables;
}

function prefixOf({ tenantId }: WallCaller): string | undefined {
  return tenantId ? tenantPrefix(tenantId) : undefined;
}

function refused(
  { log }: WallCaller,
  operation: string,
  { table, reason }: Refusal,
  metrics: Metrics | undefined,
): AccessDeniedError {
  metrics?.record("keelson.wall.hits", 1);
  log.error("tenant.wall", { operation, ...defined({ table }), reason });
  const where = table === undefined ? "" : ` on the table ${table}`;
  const cause = new Error(`${operation}${where}: ${reason}`);
  return new AccessDeniedError("tenant.wall", { cause });
}

/** At depth 3, copies the parts of an item that the check reads: its action, and its maps. */
function copyOf(value: unknown, depth: number): unknown {
  if (depth === 0 || !isRecord(value) || value instanceof Promise) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, copyOf(member, depth - 1)]),
  );
}
