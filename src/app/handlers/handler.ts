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

/**
 * Values that a handler can return: its output, a `reply` with that output, or a web `Response`.
 */
export type Answer<Output> = Output | Reply<Output> | Response;

/**
 * Return type of a handler: `Given` as inferred, a promise or not, if it fits `Output`. Otherwise a
 * string literal type that no result matches: the compiler then prints that one line instead of
 * seven about an `Awaitable<Answer<Output>>`.
 */
type Returned<Given, Output> = [Settled<Given>] extends [Answer<Output>]
  ? Given
  : [Settled<Given>] extends [Answer<Unwritten<Output>>]
    ? Given
    : `the result does not match \`output\`: ${Misfits<Exclude<Settled<Given>, Response>, Unwritten<Output>>}`;

/** Like `Awaited`, but for promises only, which takes a fifth of the type instantiations. */
type Settled<Given> = Given extends Promise<infer Value> ? Value : Given;

/**
 * The schema, or an error message as a type if the entry of `Queries` or `Writes` contradicts the
 * schema.
 */
type DeclaredInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Queries
  ? [Queries[Name]["input"]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another input in Queries`
  : Name extends keyof Writes
    ? WriteInput<Input, Name>
    : Input;

/**
 * Input of a write. Hooks receive the output of the schema, and the schema accepts their changed
 * input.
 */
type WriteInput<Input extends StandardSchemaV1, Name extends keyof Writes & string> = [
  Writes[Name]["input"],
  StandardSchemaV1.InferOutput<Input>,
] extends [StandardSchemaV1.InferInput<Input>, Writes[Name]["accepted"]]
  ? Input
  : `${Name} has another input in Writes`;

/**
 * Schema whose input is the handler's result and whose output is sent. An entry of `Queries` or
 * `Writes` declares the sent type.
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

/** Result type of a handler whose options have no `output`. */
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
   * Any Standard Schema. The handler receives its output. Without a schema, the handler receives
   * the raw input as `unknown`.
   */
  readonly input?: DeclaredInput<Input, Name>;
  /**
   * Any Standard Schema. It validates the result before keelson commits or stores anything. keelson
   * sends the output of the schema: removed members are missing, and defaults and transforms are
   * applied. The handler returns the input of the schema. A result that does not fit is a 500
   * `response_mismatch`. For a `Response`, the schema checks only the JSON body of a 2xx, not
   * streams, bytes, redirects or errors.
   */
  readonly output?: OutputSchema<Output, Sent, Name>;
  /**
   * Codes of the handler's errors, with the status of each: `{ out_of_stock: 409 }`. Outside
   * production, an error that neither this list nor the OpenAPI document has is logged once, as
   * `error.undeclared`. Default: none.
   */
  readonly errors?: Readonly<Record<string, number>>;
  /**
   * Status of a plain result, from 200 to 399. In a list such as `[200, 304]`, the first status is
   * for a plain result and the others are those that the handler sets in a `reply`. Default: 200,
   * and 204 for `undefined`.
   */
  readonly status?: number | readonly number[];
  /**
   * Handles the call. The type of `ctx.user` follows `access`: under every rule except
   * `access.everyone`, its IDs are strings.
   */
  readonly handler: (
    ctx: PipelineContext<CallerOf<Rule>>,
    input: StandardSchemaV1.InferOutput<Input>,
  ) => Returned<Result, NoInfer<Output>>;
}

interface Routed<Rule extends AccessRule> {
  /** Method and pattern: `GET /files/:id`. */
  readonly route: string;
  /** Callers that may use the route, or the query through `ctx.query`. */
  readonly access: Rule;
}

interface Unrouted {
  readonly route?: never;
  readonly access?: never;
}

/**
 * Options of a query. A query only reads, and its route is a GET. `Output` is the input type of the
 * `output` schema and `Sent` its output type. `Result` is the return type of the handler, a promise
 * or not. `Name` is the full name, which {@link Queries} can have an entry for.
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
 * Options of a write. A write changes something, and its route is a POST, PUT, PATCH or DELETE. The
 * type parameters match {@link QueryOptions}, except that `Name` refers to {@link Writes}.
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
        /** Kind of body that the route accepts. Default `json`. */ readonly body?: BodyKind;
      })
    | (Unrouted & { readonly body?: never })
  );

/** Deduplication of a write's retries (specification 6.6). */
interface Repeats {
  /**
   * Deduplication by a client header, or by a key that the client must send, and the time for which
   * a retry receives the first answer. Default: the server's `once.key`, for five minutes.
   */
  readonly once?: OnceBy | RequiredKey;
  /** Encrypts the stored answer with the key ring. Default: stores it as plain data. */
  readonly replay?: "encrypted";
  /**
   * Further headers that a retry receives, in addition to `content-type`, `location`, `etag`,
   * `link` and `cache-control`.
   */
  readonly replayHeaders?: readonly string[];
}

/** Handler in the registry. Its types are checked in its declaration. */
export interface HandlerDeclaration {
  readonly kind: "query" | "write";
  readonly feature: string;
  /** Full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly input: StandardSchemaV1 | undefined;
  readonly output: StandardSchemaV1 | undefined;
  readonly errors?: Readonly<Record<string, number>>;
  /**
   * Statuses of the answers, with the status of a plain result first. `undefined` means 200, or 204
   * for an `undefined` result.
   */
  readonly status?: readonly number[] | undefined;
  readonly route: string | undefined;
  readonly access: AccessRule | undefined;
  readonly body: BodyKind;
  /** Deduplication of retries. `undefined`: the server's setting applies. */
  readonly once?: OnceBy | RequiredKey | undefined;
  readonly replay?: "encrypted" | undefined;
  /** In lower case. */
  readonly replayHeaders?: readonly string[];
  /**
   * Reports whether the fingerprint of an input may be stored. Default: every fingerprint may be.
   */
  readonly isClaimable?: (input: unknown) => boolean;
  readonly run: (ctx: PipelineContext, input: unknown) => unknown;
}
