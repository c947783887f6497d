import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AccessRule, CallerOf } from "../../base/identity/access.ts";
import type { Queries, Writes } from "../../base/types/names.ts";
import type { BodyLimits } from "../../parts/http/limits.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import type { Reply } from "../../parts/http/reply.ts";
import type { StreamForm } from "../../parts/http/streamed-output.ts";
import type { RateLimit } from "../../parts/limits/rate-limit.ts";
import type { OnceOptions, OnceRule } from "../../parts/once/once-by.ts";
import type { WebhookScheme, WebhookVerifier } from "../../parts/webhooks/scheme.ts";
import type { PipelineContext, QueryContext } from "./pipeline-context.ts";

/** A value, or a promise that resolves to one. */
export type Awaitable<Value> = Value | Promise<Value>;

/** Value that a handler may return: its output, a `reply` with that output, or a web `Response`. */
export type Answer<Output> = Output | Reply<Output> | Response;

/** One or more limits on the number of requests. All limits apply. */
export type RateLimits = RateLimit<QueryContext> | readonly RateLimit<QueryContext>[];

/** `Given` if it fits `Output`; otherwise a string, so that the compiler prints 1 line, not 7. */
type Returned<Given, Output> = [Settled<Given>] extends [Answer<Output>]
  ? Given
  : [Settled<Given>] extends [Answer<Unwritten<Output>>]
    ? Given
    : `the result does not match \`output\`: ${Misfits<Exclude<Settled<Given>, Response>, Unwritten<Output>>}`;

/** Read-only form of a type, which also accepts literal arrays. keelson never changes a result. */
type Unwritten<Value> = Value extends (...given: never) => unknown
  ? Value
  : Value extends object
    ? { readonly [Name in keyof Value]: Unwritten<Value[Name]> }
    : Value;

/** Names of the members that do not match `Output`. */
type Misfits<Result, Output> = Known<
  MisfitsOf<Result extends Reply<infer Body> ? Body : Result, Output>
>;

type Known<Names extends string> = [Names] extends [never] ? "its type" : Names;

type MisfitsOf<Body, Output> = Body extends Output
  ? never
  : Body extends object
    ? Output extends readonly unknown[]
      ? "its items"
      : Output extends object
        ? MisfittingNames<Body, Output>
        : "its type"
    : "its type";

type MisfittingNames<Body, Output> = {
  [Name in keyof Output]-?: Body extends { readonly [Same in Name]: unknown }
    ? Body[Name] extends Output[Name]
      ? never
      : Shown<Name>
    : Pick<Output, Name> extends Required<Pick<Output, Name>>
      ? Shown<Name>
      : never;
}[keyof Output];

type Shown<Name> = Name extends string | number ? `${Name}` : "its type";

/** Like `Awaited`, but only for promises, which takes a fifth of the type instantiations. */
type Settled<Given> = Given extends Promise<infer Value> ? Value : Given;

/** The `input` schema, or a message if the entry of `Queries` or `Writes` contradicts it. */
type DeclaredInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Queries
  ? [Queries[Name]["input"]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another input in Queries`
  : Name extends keyof Writes
    ? WriteInput<Input, Name>
    : Input;

/** The schema's output must also match the input that hooks receive. */
type WriteInput<Input extends StandardSchemaV1, Name extends keyof Writes & string> = [
  Writes[Name]["input"],
  StandardSchemaV1.InferOutput<Input>,
] extends [StandardSchemaV1.InferInput<Input>, Writes[Name]["accepted"]]
  ? Input
  : `${Name} has another input in Writes`;

/** Like `DeclaredInput`, for the `output` schema. */
type OutputSchema<Output, Sent, Name extends string> = Name extends keyof Queries
  ? [Sent] extends [Queries[Name]["output"]]
    ? StandardSchemaV1<Output, Sent>
    : `${Name} has another output in Queries`
  : Name extends keyof Writes
    ? [Sent] extends [Writes[Name]["output"]]
      ? StandardSchemaV1<Output, Sent>
      : `${Name} has another output in Writes`
    : StandardSchemaV1<Output, Sent>;

/** Output of a handler without an `output` schema. */
export type DeclaredOutput<Name extends string> = Name extends keyof Queries
  ? Queries[Name]["output"]
  : Name extends keyof Writes
    ? Writes[Name]["output"]
    : unknown;

/** Body of a handler's answer: the result of its `output` schema or, without one, its own result. */
export type OutputOf<Result, Output, Sent> = unknown extends Output
  ? BodyOf<Settled<Result>>
  : Sent;

type BodyOf<Result> =
  Result extends Reply<infer Body> ? Body : Result extends Response ? unknown : Result;

export interface HandlerOptions<
  Input extends StandardSchemaV1,
  Output,
  Result,
  Context,
  Name extends string,
  Sent,
> {
  /** Any Standard Schema, whose output the handler receives. Default: the raw input, `unknown`. */
  readonly input?: DeclaredInput<Input, Name>;
  /**
   * Any Standard Schema. keelson validates the result before it commits or stores anything, and
   * sends the schema's output: with its defaults and transforms, without removed members. A result
   * that does not match is a 500 `response_mismatch`. Of a `Response`, only the JSON body of a 2xx
   * is validated, not streams, bytes, redirects or errors.
   */
  readonly output?: OutputSchema<Output, Sent, Name>;
  /**
   * Status of each error code that the handler throws: `{ out_of_stock: 409 }`. Outside production,
   * an error that is neither here nor in the OpenAPI document is logged once, as
   * `error.undeclared`. Default: none.
   */
  readonly errors?: Readonly<Record<string, number>>;
  /**
   * Status of a plain result, from 200 to 399. In a list such as `[200, 304]`, the first is for
   * plain results, and the handler sets the others in a `reply`. Default: 200, and 204 for
   * `undefined`.
   */
  readonly status?: number | readonly number[];
  /**
   * Limits on the number of requests to the route, in addition to the limits of the feature and of the
   * server. See `docs/rate-limits.md`. Default: none.
   */
  readonly rateLimit?: RateLimits;
  /** The IDs of `ctx.user` are strings under every `access` rule except `access.everyone`. */
  readonly handler: (
    ctx: Context,
    input: StandardSchemaV1.InferOutput<Input>,
  ) => Returned<Result, NoInfer<Output>>;
}

interface Routed<Rule extends AccessRule> {
  /** Method and pattern: `GET /files/:id`. */
  readonly route: string;
  /** Access rule of the route, and of calls to the query through `ctx.query`. */
  readonly access: Rule;
}

interface Unrouted {
  readonly route?: never;
  readonly access?: never;
}

/**
 * Options of a query, which only reads and whose route is a GET. `Output` and `Sent` are the input
 * and output types of the `output` schema. `Result` is the handler's return type, a promise or not.
 * `Name` is the full name, as in {@link Queries}.
 */
export type QueryOptions<
  Input extends StandardSchemaV1,
  Output,
  Result,
  Rule extends AccessRule = AccessRule,
  Name extends string = string,
  Sent = Output,
> = HandlerOptions<Input, Output, Result, QueryContext<CallerOf<Rule>>, Name, Sent> &
  (Routed<Rule> | Unrouted);

/**
 * Options of a write, whose route is a POST, PUT, PATCH or DELETE. Type parameters as in
 * {@link QueryOptions}; `Name` as in {@link Writes}.
 */
export type WriteOptions<
  Input extends StandardSchemaV1,
  Output,
  Result,
  Rule extends AccessRule = AccessRule,
  Name extends string = string,
  Sent = Output,
> = HandlerOptions<Input, Output, Result, PipelineContext<CallerOf<Rule>>, Name, Sent> &
  Repeats &
  (
    | (Routed<Rule> & {
        /** Format of the body. Default `json`. */
        readonly body?: BodyKind;
        /** Limits in place of the server's. Default: the server's. */
        readonly limits?: BodyLimits;
      })
    | (Unrouted & { readonly body?: never; readonly limits?: never })
  );

/** Deduplication of a write's retries (specification 6.6). */
interface Repeats {
  /**
   * Options that override the server's `once`; `false` turns deduplication off. Default: the
   * server's `once`.
   */
  readonly once?: OnceOptions | false;
  /** Encrypts the stored answer with the key ring. Default: not encrypted. */
  readonly replay?: "encrypted";
  /** Headers that a retry gets besides content-type, location, etag, link and cache-control. */
  readonly replayHeaders?: readonly string[];
}

/** A declared query or write, with its types erased. */
export interface HandlerDeclaration {
  readonly kind: "query" | "write";
  readonly feature: string;
  /** Full name, `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly input: StandardSchemaV1 | undefined;
  readonly output: StandardSchemaV1 | undefined;
  /** Format in which `output` streams; `undefined` if it is sent whole. */
  readonly stream?: StreamForm | undefined;
  readonly errors?: Readonly<Record<string, number>>;
  /** Success statuses, a plain result's status first. `undefined`: 200, or 204 without a result. */
  readonly status?: readonly number[] | undefined;
  readonly rateLimit?: RateLimits | undefined;
  readonly route: string | undefined;
  readonly access: AccessRule | undefined;
  readonly body: BodyKind;
  /** Largest body, in bytes. `undefined`: the server's limit. */
  readonly bodyBytes?: number | undefined;
  /** Options that override the server's `once`. */
  readonly once?: OnceOptions | false | undefined;
  /** These options merged with the server's, for a handler with a route. */
  readonly onceRule?: OnceRule | false;
  readonly replay?: "encrypted" | undefined;
  /** Header names in lower case. */
  readonly replayHeaders?: readonly string[];
  /** Whether a claim may store the fingerprint of an input. Default: always. */
  readonly isClaimable?: (input: unknown) => boolean;
  /** Adds to a committed result what only the first response has, and no store: a secret. */
  readonly revealed?: (result: unknown) => unknown;
  /** Present if the caller is a sender that signs. */
  readonly webhook?: WebhookDeclaration;
  readonly run: (ctx: PipelineContext, input: unknown) => unknown;
}

/** Options of a webhook that a write does not have, with their types erased. */
export interface WebhookDeclaration {
  readonly verify: WebhookScheme | WebhookVerifier;
  readonly id: ((event: unknown) => unknown) | undefined;
  readonly tenant: ((event: unknown) => unknown) | { readonly param: string };
}
