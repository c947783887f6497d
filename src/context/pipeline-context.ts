// biome-ignore lint/style/noRestrictedImports: a type only; `ctx.db` is a document client
import type { DynamoDBDocumentClient, TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { ConfigKeyHandle } from "../config/declare/declaration.ts";
import type { User } from "../identity/user.ts";
import type { Logger } from "../log/logger.ts";
import type { Events, Jobs, Queries } from "./names.ts";

/** The database of a `ctx`: a DynamoDB document client whose calls carry `ctx.signal`. */
export type Database = DynamoDBDocumentClient;

/** An action of `ctx.commit`: one of `Put`, `Update`, `Delete` and `ConditionCheck`. */
export type CommitItem = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];

/** The HTTP request a handler answers; everything in it is read-only. */
export interface RequestView {
  readonly method: string;
  /** The path, percent-encoded: as received, or encoded again where an API Gateway HTTP API has decoded it. */
  readonly path: string;
  /** Prototype-free, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Prototype-free, names in lower case. */
  readonly cookies: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
  /** The body's bytes as received; empty where there was none, or a middleware has parsed a form. */
  readonly rawBody: Uint8Array;
}

/** Sends messages through channels, each as a job (specification 2.6). */
export interface DeliveryAccessor {
  /**
   * Enqueues a message for a channel; it is sent at least once. Resolves once the queue has it.
   *
   * @param options.key - a message of the same channel and key, within the tenant and 5 minutes, is the same message.
   * Default: every call is a message of its own, and a run that is repeated repeats its messages, not the sending.
   * @throws TypeError where the message does not fit the channel's `input`; Error for a channel that is not
   * declared, and in a query.
   */
  readonly send: (
    channel: string,
    message: Readonly<Record<string, unknown>>,
    options?: { readonly key?: string },
  ) => Promise<void>;
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
  /**
   * Publishes an event (specification 2.8): it is held until `commit`, or else until the handler returns, is stored together
   * with what is committed, and then goes to the bus. Where the handler throws it is dropped.
   *
   * @throws TypeError for a payload that does not fit its schema; Error for a type that no feature declares, after `commit`, and in a
   * query; RangeError where it is larger than the bus takes.
   */
  readonly publish: <Type extends keyof Events>(type: Type, payload: Events[Type]) => Promise<void>;
  /**
   * Enqueues a job (specification 6.5), at once: it runs at least once, also where the handler throws later. One of the same
   * name, tenant and payload as one of the last 5 minutes is dropped by the queue.
   *
   * @throws TypeError where the payload does not fit the job's `input`; Error for a job that is not declared, and in a
   * query; RangeError where it is larger than the queue takes.
   */
  readonly enqueue: <Name extends keyof Jobs>(name: Name, payload: Jobs[Name]) => Promise<void>;
  /** Sends messages through channels. */
  readonly delivery: DeliveryAccessor;
  /** Aborts when the caller is gone; present only when the request carries one (specification 4.5). */
  readonly signal?: AbortSignal;
  /** The HTTP request; present only where there is one. */
  readonly request?: RequestView;
}
