// biome-ignore lint/style/noRestrictedImports: a type only; `ctx.db` is a document client
import type { DynamoDBDocumentClient, TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { ConfigKeyHandle } from "../config/declaration.ts";
import type { User } from "../identity/user.ts";
import type { Logger } from "../log/logger.ts";
import type { Queries } from "./names.ts";

/** The database of a `ctx`: a DynamoDB document client whose calls carry `ctx.signal`. */
export type Database = DynamoDBDocumentClient;

/** An action of `ctx.commit`: one of `Put`, `Update`, `Delete` and `ConditionCheck`. */
export type CommitItem = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];

/** The HTTP request a handler answers; everything in it is read-only. */
export interface RequestView {
  readonly method: string;
  /** The path as received, still percent-encoded. */
  readonly path: string;
  /** Prototype-free, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Prototype-free, names in lower case. */
  readonly cookies: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  /** The body's bytes as received; empty where there was none. */
  readonly rawBody: Uint8Array;
}

/** What every handler gets as its first argument (specification 2.6). */
export interface PipelineContext {
  /** DynamoDB, as the request's own document client. */
  readonly db: Database;
  /** The caller. */
  readonly user: User;
  /** Logs with `requestId`, `tenantId`, `userId` and `handler`. */
  readonly log: Logger;
  /** The correlation ID: adopted from `X-Request-ID`, or generated. */
  readonly requestId: string;
  /**
   * Reads a configuration value through the cascade (specification 4.1).
   *
   * @throws FrameworkError `config_unavailable` (503) where the rows cannot be read.
   */
  readonly config: <Value>(handle: ConfigKeyHandle<Value>) => Promise<Value>;
  /** Runs a query as the same caller, its input validated, without its route's access rule. */
  readonly query: <Name extends keyof Queries>(name: Name, input: Queries[Name]["input"]) => Promise<Queries[Name]["output"]>;
  /**
   * Writes items, in one transaction with the completed claim of this write: the effect happens exactly once, whatever
   * crashes. Returns `result`, which is the answer whatever happens later. At most 100 items less one for the claim, 4 MB.
   *
   * @param result - what the handler would return: a value, or a `reply`.
   * @throws CommitConditionError (409) where a condition of an item did not hold: nothing was written; RangeError beyond
   * the limits and TypeError for what is no item, before anything is sent; Error for a second commit of a run, and in queries.
   * @example
   * return ctx.commit([{ Put: { TableName: table.name, Item: row } }], reply(file, { status: 201 }));
   */
  readonly commit: <const Result>(items: readonly CommitItem[], result: Result) => Promise<Result>;
  /** Aborts when the caller is gone; present only when the request carries one (specification 4.5). */
  readonly signal?: AbortSignal;
  /** The HTTP request; present only where there is one. */
  readonly request?: RequestView;
}
