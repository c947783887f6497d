import { isRecord } from "../../base/errors/option-table.ts";
import type { SessionTag } from "./session-credentials.ts";
import { tableOf } from "./walled-table.ts";

/** Signs a request again, as a session. @throws Error for a request that it cannot sign. */
export type SignAsSession = (request: unknown) => void;

/** The credentials of its sessions reach the rows of one tenant, or of all tenants. */
export interface Isolation {
  /** @throws FrameworkError `isolation_unavailable` if the credentials are unavailable. */
  open(tag: SessionTag): Promise<SignAsSession>;
}

/** Returns `undefined` for a command that the process's own credentials are enough for. */
export type OpenSession = (operation: string, input: unknown) => Promise<SignAsSession> | undefined;

export const acrossTag: SessionTag = { key: "across", value: "true" };

/** `isWalled`: whether the table with a physical name has rows of tenants. */
export function sessionOpener(
  isolation: Isolation,
  isWalled: (table: string) => boolean,
  tag: SessionTag,
): OpenSession {
  return (operation, input) => {
    const tables = tablesOf(input).map((name) => isWalled(tableOf(name) ?? ""));
    if (!tables.includes(true)) return undefined;
    // A transaction may mix tables: within it, a session may also access tables without tenants.
    if (operation.startsWith("Batch") && tables.includes(false)) {
      const message = `${operation} has tables with tenants and others, which need different credentials here; send two commands`;
      return Promise.reject(new TypeError(message));
    }
    return isolation.open(tag);
  };
}

function tablesOf(input: unknown): unknown[] {
  const { TableName: name, RequestItems: requests, TransactItems: items } = fieldsOf(input);
  if (name !== undefined) return [name];
  if (!Array.isArray(items)) return Object.keys(fieldsOf(requests));
  const actions = items.flatMap((item) => Object.values(fieldsOf(item)));
  return actions.map((action) => fieldsOf(action)["TableName"]);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
