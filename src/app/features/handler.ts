import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AccessRule, CallerOf } from "../../base/identity/access.ts";
import type { Queries, Writes } from "../../base/types/names.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import type { Reply } from "../../parts/http/reply.ts";
import type { OnceBy, RequiredKey } from "../../parts/once/once-by.ts";
import type { Misfits, Unwritten } from "./misfits.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** What a handler may return: its output, a `reply` with it, or a web `Response`. */
export type Answer<Output> = Output | Reply<Output> | Response;

/**
 * What a handler returns: `Given` as it was inferred, a promise or not, where it fits `Output`. Otherwise a text, which nothing
 * is: the compiler's message is that line, rather than seven about an `Awaitable<Answer<Output>>`.
 */
type Returned<Given, Output> = [Settled<Given>] extends [Answer<Output>]
  ? Given
  : [Settled<Given>] extends [Answer<Unwritten<Output>>]
    ? Given
    : `the result does not match \`output\`: ${Misfits<Exclude<Settled<Given>, Response>, Unwritten<Output>>}`;

/** `Awaited`, of promises alone: that costs a fifth of the instantiations. */
type Settled<Given> = Given extends Promise<infer Value> ? Value : Given;

/** A schema, or nothing that compiles where the entry of `Queries` or `Writes` contradicts it. */
type DeclaredInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Queries
  ? [Queries[Name]["input"]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another input in Queries`
  : Name extends keyof Writes
    ? WriteInput<Input, Name>
    : Input;

/** Hooks get what the schema gives, and what they change it takes again. */
type WriteInput<Input extends StandardSchemaV1, Name extends keyof Writes & string> = [
  Writes[Name]["input"],
  StandardSchemaV1.InferOutput<Input>,
] extends [StandardSchemaV1.InferInput<Input>, Writes[Name]["accepted"]]
  ? Input
  : `${Name} has another input in Writes`;

/** A schema that takes what the handler returns and gives what is sent, which is what an entry of `Queries` or `Writes` has. */
type OutputSchema<Output, Sent, Name extends string> = Name extends keyof Queries
  ? [Sent] extends [Queries[Name]["output"]]
    ? StandardSchemaV1<Output, Sent>
    : `${Name} has another output in Queries`
  : Name extends keyof Writes
    ? [Sent] extends [Writes[Name]["output"]]
      ? StandardSchemaV1<Output, Sent>
      : `${Name} has another output in Writes`
    : StandardSchemaV1<Output, Sent>;

/** What the result of a handler is where its options have no `output`. */
export type DeclaredOutput<Name extends string> = Name extends keyof Queries
  ? Queries[Name]["output"]
  : Name extends keyof Writes
    ? Writes[Name]["output"]
    : unknown;

interface HandlerOptions<
  Input extends StandardSchemaV1,
  Output,
  Result,
  Rule extends AccessRule,
  Name extends string,
  Sent,
> {
  /** Any Standard Schema; the handler gets its output. Without one it gets the raw input, as `unknown`. */
  readonly input?: DeclaredInput<Input, Name>;
  /**
   * Any Standard Schema. It checks the result before anything is committed or stored, and what it gives is what is sent: without
   * what it removes, with its defaults and transforms. The handler returns what it takes. A result that does not fit is a 500
   * `response_mismatch`. Of a `Response` it checks a JSON body of a 2xx; streams, bytes, redirects and errors it does not.
   */
  readonly output?: OutputSchema<Output, Sent, Name>;
  /**
   * The errors of its own that the handler may answer with, by code, and the status of each: `{ out_of_stock: 409 }`. Outside
   * production any other that the OpenAPI document does not have is logged once, as `error.undeclared`. Default: none.
   */
  readonly errors?: Readonly<Record<string, number>>;
  /**
   * The status of a result that is no `reply`, and of all others that the handler answers with: `201`, or `[200, 304]`, of which
   * the first is that of a result. From 200 to 399. Default: 200, and 204 for `undefined`.
   */
  readonly status?: number | readonly number[];
  /** `ctx.user` follows `access`: behind every rule but `access.everyone` its IDs are strings. */
  readonly handler: (
    ctx: PipelineContext<CallerOf<Rule>>,
    input: StandardSchemaV1.InferOutput<Input>,
  ) => Returned<Result, NoInfer<Output>>;
}

interface Routed<Rule extends AccessRule> {
  /** Method and pattern: `GET /files/:id`. */
  readonly route: string;
  /** Who may call the route, and the query by `ctx.query`. */
  readonly access: Rule;
}

interface Unrouted {
  readonly route?: never;
  readonly access?: never;
}

/**
 * Options of a query. A query reads, and its route is a GET. `Output` is what its `output` takes and `Sent` what that gives,
 * `Result` what its handler returns, a promise or not, and `Name` the full name, of which {@link Queries} may have an entry.
 */
export type QueryOptions<
  Input extends StandardSchemaV1,
  Output,
  Result,
  Rule extends AccessRule = AccessRule,
  Name extends string = string,
  Sent = Output,
> = HandlerOptions<Input, Output, Result, Rule, Name, Sent> & (Routed<Rule> | Unrouted);

/**
 * Options of a write. A write changes something, and its route is a POST, PUT, PATCH or DELETE. Its types are as those of a
 * query, `Name` with {@link Writes}.
 */
export type WriteOptions<
  Input extends StandardSchemaV1,
  Output,
  Result,
  Rule extends AccessRule = AccessRule,
  Name extends string = string,
  Sent = Output,
> = HandlerOptions<Input, Output, Result, Rule, Name, Sent> &
  Repeats &
  (
    | (Routed<Rule> & {
        /** The kind of body the route takes: `json` unless said otherwise. */ readonly body?: BodyKind;
      })
    | (Unrouted & { readonly body?: never })
  );

/** How retries of a write are deduplicated (specification 6.6). */
interface Repeats {
  /**
   * Which header of the client deduplicates, or that the client has to send a key, and for how long a retry gets the first
   * answer. Default: the server's `once.key`, for five minutes.
   */
  readonly once?: OnceBy | RequiredKey;
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
  /** The status of each code of its own. */
  readonly errors?: Readonly<Record<string, number>>;
  /** The statuses of its answers, that of a plain result first; `undefined` is 200, and 204 for nothing. */
  readonly status?: readonly number[] | undefined;
  readonly route: string | undefined;
  readonly access: AccessRule | undefined;
  readonly body: BodyKind;
  /** How its repeats are known; `undefined` where the server says. */
  readonly once?: OnceBy | RequiredKey | undefined;
  readonly replay?: "encrypted" | undefined;
  /** In lower case. */
  readonly replayHeaders?: readonly string[];
  /** Whether an input is one whose fingerprint may be stored; default: every one is. */
  readonly isClaimable?: (input: unknown) => boolean;
  readonly run: (ctx: PipelineContext, input: unknown) => unknown;
}
