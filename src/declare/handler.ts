import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { BodyKind } from "../http/message.ts";
import type { Reply } from "../http/reply.ts";
import type { AccessRule } from "../identity/access.ts";
import type { OnceBy } from "../once/once-by.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** What a handler may return: its output, a `reply` with it, or a web `Response`. */
export type Answer<Output> = Output | Reply<Output> | Response;

interface HandlerOptions<Input extends StandardSchemaV1, Output, Result> {
  /** Any Standard Schema; the handler gets its output. Without one it gets the raw input, as `unknown`. */
  readonly input?: Input;
  /** Types the result. Outside production a result that does not match is a 500; of a `Response` a JSON body of a 2xx. Never transforms the result. */
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

/** Options of a query. A query reads, and its route is a GET. */
export type QueryOptions<Input extends StandardSchemaV1, Output, Result> = HandlerOptions<Input, Output, Result> &
  (Routed | Unrouted);

/** Options of a write. A write changes something, and its route is a POST, PUT, PATCH or DELETE. */
export type WriteOptions<Input extends StandardSchemaV1, Output, Result> = HandlerOptions<Input, Output, Result> &
  Repeats &
  (
    | (Routed & { /** The kind of body the route takes: `json` unless said otherwise. */ readonly body?: BodyKind })
    | (Unrouted & { readonly body?: never })
  );

/** How retries of a write are deduplicated (specification 6.6). */
interface Repeats {
  /** Which header of the client deduplicates. Default: the server's `once.key`. */
  readonly once?: OnceBy;
  /** `encrypted` encrypts the stored answer with the key ring. Default: stored as plain data. */
  readonly replay?: "encrypted";
  /** More headers that a retry gets, beside `content-type`, `location`, `etag`, `link` and `cache-control`. */
  readonly replayHeaders?: readonly string[];
}

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
  /** How its repeats are known; `undefined` where the server says. */
  readonly once?: OnceBy | undefined;
  readonly replay?: "encrypted" | undefined;
  /** In lower case. */
  readonly replayHeaders?: readonly string[];
  /** Whether an input is one whose fingerprint may be stored; default: every one is. */
  readonly isClaimable?: (input: unknown) => boolean;
  readonly run: (ctx: PipelineContext, input: unknown) => unknown;
}
