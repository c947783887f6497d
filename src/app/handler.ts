import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { PipelineContext } from "../context/pipeline-context.ts";
import type { BodyKind } from "../http/message.ts";
import type { Reply } from "../http/reply.ts";
import type { AccessRule } from "../identity/access.ts";

/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** What a handler may return: its output, or a reply around it. */
export type Answer<Output> = Output | Reply<Output>;

interface HandlerOptions<Input extends StandardSchemaV1, Output, Result> {
  /** Any Standard Schema; the handler gets what it gives. Without one the input arrives as it is. */
  readonly input?: Input;
  /** Checked outside production: a result that does not fit is a 500. Never transforms the result. */
  readonly output?: StandardSchemaV1<Output>;
  readonly handler: (ctx: PipelineContext, input: StandardSchemaV1.InferOutput<Input>) => Awaitable<Result>;
}

interface Routed {
  /** Method and pattern: `GET /files/:id`. */
  readonly route: string;
  /** Who may call the route. */
  readonly access: AccessRule;
}

interface Unrouted {
  readonly route?: never;
  readonly access?: never;
}

/** How a query is declared: it reads, and its route is a GET. */
export type QueryOptions<Input extends StandardSchemaV1, Output, Result> = HandlerOptions<Input, Output, Result> &
  (Routed | Unrouted);

/** How a write is declared: its route is a POST, PUT, PATCH or DELETE. */
export type WriteOptions<Input extends StandardSchemaV1, Output, Result> = HandlerOptions<Input, Output, Result> &
  (
    | (Routed & { /** The kind of body the route takes: `json` unless said otherwise. */ readonly body?: BodyKind })
    | (Unrouted & { readonly body?: never })
  );

/** A handler as the registry keeps it: its types are checked where it is declared. */
export interface HandlerDeclaration {
  readonly kind: "query" | "write";
  readonly feature: string;
  /** The full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly input: StandardSchemaV1 | undefined;
  readonly output: StandardSchemaV1 | undefined;
  readonly route: string | undefined;
  readonly access: AccessRule | undefined;
  readonly body: BodyKind;
  readonly run: (ctx: PipelineContext, input: unknown) => unknown;
}
