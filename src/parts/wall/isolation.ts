import { tableOf } from "./check-command.ts";
import type { SessionTag } from "./session-credentials.ts";

/** Signs a request anew, as the session that it was made for. @throws Error for a request that it cannot sign. */
export type SignAsSession = (request: unknown) => void;

/** What gives sessions whose credentials reach the rows of one tenant, or those of every tenant. */
export interface Isolation {
  /** @throws FrameworkError `isolation_unavailable` where the session's credentials cannot be had. */
  open(tag: SessionTag): Promise<SignAsSession>;
}

/** Opens the session that a command needs; `undefined` where the process's own credentials reach all of its tables. */
export type OpenSession = (operation: string, input: unknown) => Promise<SignAsSession> | undefined;

/** The tag of a session for the rows of every tenant. */
export const acrossTag: SessionTag = { key: "across", value: "true" };

/**
 * Opens sessions for the commands on walled tables.
 *
 * @param isWalled - by the name that DynamoDB knows.
 */
export function sessionOpener(
  isolation: Isolation,
  isWalled: (table: string) => boolean,
  tag: SessionTag,
): OpenSession {
  return (operation, input) => {
    const tables = tablesOf(input).map((name) => isWalled(tableOf(name) ?? ""));
    if (!tables.includes(true)) return undefined;
    // A transaction has one set of credentials, which may do with other tables what a transaction does.
    if (operation.startsWith("Batch") && tables.includes(false)) {
      const message = `${operation} has tables with tenants and others, which take credentials of their own here; send two commands`;
      return Promise.reject(new TypeError(message));
    }
    return isolation.open(tag);
  };
}

/** The tables of a command, by name or ARN; none of one that names its tables in another way. */
function tablesOf(input: unknown): unknown[] {
  const { TableName: name, RequestItems: requests, TransactItems: items } = fieldsOf(input);
  if (name !== undefined) return [name];
  if (Array.isArray(items)) {
    return items.flatMap((item) =>
      Object.values(fieldsOf(item)).map((action) => fieldsOf(action)["TableName"]),
    );
  }
  return Object.keys(fieldsOf(requests));
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : {}; // safe: it was just looked at
}
