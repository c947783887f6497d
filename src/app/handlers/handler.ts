import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AccessRule, CallerOf } from "../../base/identity/access.ts";
import type { Queries, Writes } from "../../base/types/names.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import type { Reply } from "../../parts/http/reply.ts";
import type { OnceBy, RequiredKey } from "../../parts/once/once-by.ts";
import type { Misfits, Unwritten } from "./misfits.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/** A value, or a promise that resolves to one. */
export type Awaitable<Value> = Value | Promise<Value>;

/** Results of a handler: its output, a `reply` with that output, or a web `Response`. */
export type Answer<Output> = Output | Reply<Output> | Response;

/**
 * Return type of a handler: `Given` as inferred if it fits `Output`, otherwise a string literal
 * type that no result matches. The compiler then prints that one line instead of seven.
 */
type Returned<Given, Output> = [Settled<Given>] extends [Answer<Output>]
  ? Given
  : [Settled<Given>] extends [Answer<Unwritten<Output>>]
    ? Given
    : `the result does not match \`output\`: ${Misfits<Exclude<Settled<Given>, Response>, Unwritten<Output>>}`;

/** Like `Awaited`, for promises only: a fifth of the type instantiations. */
type Settled<Given> = Given extends Promise<infer Value> ? Value : Given;

/** The schema, or an error message if the entry of `Queries` or `Writes` contradicts it. */
type DeclaredInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Queries
  ? [Queries[Name]["input"]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another input in Queries`
  : Name extends keyof Writes
    ? WriteInput<Input, Name>
    : Input;

/** Hooks receive the output of the schema, and the schema accepts their changed input. */
type WriteInput<Input extends StandardSchemaV1, Name extends keyof Writes & string> = [
  Writes[Name]["input"],
  StandardSchemaV1.InferOutput<Input>,
] extends [StandardSchemaV1.InferInput<Input>, Writes[Name]["accepted"]]
  ? Input
  : `${Name} has another input in Writes`;

/**
 * Schema from the handler's result to the sent body. An entry of `Queries` or `Writes` declares the
 * sent type.
 */
type OutputSchema<Output, Sent, Name extends string> = Name extends keyof Queries
  ? [Sent] extends [Queries[Name]["output"]]
    ? StandardSchemaV1<Output, Sent>
    : `${Name} has another output in Queries`
  : Name extends keyof Writes
    ? [Sent] extends [Writes[Name]["output"]]
      ? StandardSchemaV1<Output, Sent>
      : `${Name} has another output in Writes`
    : StandardSchemaV1<Output, Sent>;

/** Result of a handler without an `output` schema. */
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
  /**
   * Any Standard Schema. The handler receives its output, or the raw input as `unknown` without a
   * schema.
   */
  readonly input?: DeclaredInput<Input, Name>;
  /**
   * Any Standard Schema. It validates the result before keelson commits or stores anything, and its
   * output is sent: without removed members, with defaults and transforms. A result that does not
   * fit is a 500 `response_mismatch`. Of a `Response`, it checks only the JSON body of a 2xx, not
   * streams, bytes, redirects or errors.
   */
  readonly output?: OutputSchema<Output, Sent, Name>;
  /**
   * Status of each error code of the handler: `{ out_of_stock: 409 }`. Outside production, an error
   * that neither this list nor the OpenAPI document has is logged once, as `error.undeclared`.
   * Default: none.
   */
  readonly errors?: Readonly<Record<string, number>>;
  /**
   * Status of a plain result, from 200 to 399. In a list such as `[200, 304]`, further statuses are
   * those that the handler sets in a `reply`. Default: 200, and 204 for `undefined`.
   */
  readonly status?: number | readonly number[];
  /**
   * `ctx.user` follows `access`: under every rule except `access.everyone`, its IDs are strings.
   */
  readonly handler: (
    ctx: PipelineContext<CallerOf<Rule>>,
    input: StandardSchemaV1.InferOutput<Input>,
  ) => Returned<Result, NoInfer<Output>>;
}

interface Routed<Rule extends AccessRule> {
  /** Method and pattern: `GET /files/:id`. */
  readonly route: string;
  /** Callers of the route, and of the query through `ctx.query`. */
  readonly access: Rule;
}

interface Unrouted {
  readonly route?: never;
  readonly access?: never;
}

/**
 * Options of a query, which only reads and whose route is a GET. `Output` and `Sent` are the input
 * and output types of the `output` schema, `Result` is what the handler returns, a promise or not,
 * and `Name` the full name, as in {@link Queries}.
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
 * Options of a write, whose route is a POST, PUT, PATCH or DELETE. Type parameters as in {@link
 * QueryOptions}, with `Name` as in {@link Writes}.
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
    | (Routed<Rule> & { /** Default `json`. */ readonly body?: BodyKind })
    | (Unrouted & { readonly body?: never })
  );

/** Deduplication of a write's retries (specification 6.6). */
interface Repeats {
  /**
   * Header that deduplicates, or a required key, and how long a retry receives the first answer.
   * Default: the server's `once.key`, for five minutes.
   */
  readonly once?: OnceBy | RequiredKey;
  /** Encrypts the stored answer with the key ring. Default: plain data. */
  readonly replay?: "encrypted";
  /** Headers for a retry besides `content-type`, `location`, `etag`, `link` and `cache-control`. */
  readonly replayHeaders?: readonly string[];
}

/** Types are checked in the declaration. */
export interface HandlerDeclaration {
  readonly kind: "query" | "write";
  readonly feature: string;
  /** `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly input: StandardSchemaV1 | undefined;
  readonly output: StandardSchemaV1 | undefined;
  readonly errors?: Readonly<Record<string, number>>;
  /** That of a plain result first. `undefined`: 200, or 204 for an `undefined` result. */
  readonly status?: readonly number[] | undefined;
  readonly route: string | undefined;
  readonly access: AccessRule | undefined;
  readonly body: BodyKind;
  /** `undefined`: the server's setting. */
  readonly once?: OnceBy | RequiredKey | undefined;
  readonly replay?: "encrypted" | undefined;
  /** In lower case. */
  readonly replayHeaders?: readonly string[];
  /** Whether the fingerprint of an input may be stored. Default: always. */
  readonly isClaimable?: (input: unknown) => boolean;
  readonly run: (ctx: PipelineContext, input: unknown) => unknown;
}
