import type { StandardSchemaV1 } from "@standard-schema/spec";
import { quoted } from "../../base/errors/quoted.ts";
import { defined } from "../../base/types/defined.ts";
import { type AnyEvent, nameOf, type ReceivedOf } from "../../base/types/handles.ts";
import type { Channels, Events, Jobs } from "../../base/types/names.ts";
import type { AnySchema, SchemaInput, SchemaOutput, TypedSchema } from "../../base/types/schema.ts";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import { aConcurrency, type Concurrency } from "./concurrency.ts";
import type { Awaitable } from "./handler.ts";
import { keptDaysOf } from "./kept-days.ts";
import type { PipelineContext, ReadContext } from "./pipeline-context.ts";
import {
  aFunction,
  aSchema,
  type Declaring,
  isWord,
  knownOptions,
  named,
  problemsOf,
  type Requirements,
  required,
  requireOptions,
  requireValue,
  twoWords,
} from "./requirements.ts";

/** An event's schema, or an error message if its output is not the payload in {@link Events}. */
export type EventSchema<
  Schema extends AnySchema,
  Type extends string,
  Sent = SchemaInput<Schema>,
  Received = SchemaOutput<Schema>,
> = [keyof Events] extends [never]
  ? Schema | TypedSchema<Sent, Received>
  : Type extends keyof Events
    ? [Received] extends [Events[Type]]
      ? Schema | TypedSchema<Sent, Received>
      : `${Type} has another payload in Events`
    : Schema | TypedSchema<Sent, Received>;

/** Event that a consumer receives. */
export type EventOf<Event extends AnyEvent> = SharedEvent<ReceivedOf<Event>>;

/** Options of a consumer. */
export interface ConsumerOptions<Payload> {
  /** Name in kebab case, unique among the consumers of the feature's events of this entity. */
  readonly name: string;
  /** Runs at a time, in all processes together. Default: no limit. */
  readonly concurrency?: Concurrency;
  /** Consumes an event. If it throws, the queue redelivers the event. */
  readonly handler: (
    ctx: PipelineContext,
    event: NoInfer<SharedEvent<Payload>>,
  ) => Awaitable<unknown>;
}

/** A job's `input` schema, or an error message if it rejects the payload in {@link Jobs}. */
type JobInput<Input extends AnySchema, Name extends string, Payload, Accepted> = [
  keyof Jobs,
] extends [never]
  ? Input | TypedSchema<Payload, Accepted>
  : Name extends keyof Jobs
    ? [Jobs[Name]] extends [Payload]
      ? Input | TypedSchema<Payload, Accepted>
      : `${Name} has another payload in Jobs`
    : Input | TypedSchema<Payload, Accepted>;

/** Like `JobInput`, for the message in {@link Channels}. */
type ChannelInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Channels
  ? [Channels[Name]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another message in Channels`
  : Input;

/**
 * Options of a job. `Name` is its full name, as in {@link Jobs}. The handler receives `Accepted`, the
 * output of the `input` schema.
 */
export interface JobOptions<
  Input extends AnySchema,
  Name extends string = string,
  Payload = SchemaInput<Input>,
  Accepted = SchemaOutput<Input>,
> {
  /** Any Standard Schema, applied on enqueue and on run. The handler receives its output. */
  readonly input: JobInput<Input, Name, Payload, Accepted>;
  /** Runs the job. If it throws, the queue redelivers the job. */
  readonly handler: (ctx: PipelineContext, payload: NoInfer<Accepted>) => Awaitable<unknown>;
  /**
   * Returns the deduplication key. Jobs of a tenant with equal keys are duplicates. Default: the
   * whole payload.
   */
  readonly dedupKey?: (payload: NoInfer<Payload>) => string;
  /**
   * With `tenant`, the default, equal jobs of two users in a tenant are duplicates. With `user`,
   * they are not.
   */
  readonly dedupScope?: "tenant" | "user";
  /**
   * Returns the ordering key. Jobs with equal keys run one after another, in the order they were
   * enqueued, except that a job may overtake one that a crash or an outage has left in the outbox.
   * Default: no order.
   */
  readonly order?: (payload: NoInfer<Payload>) => string;
  /** Runs at a time, in all processes together. Default: no limit. */
  readonly concurrency?: Concurrency;
}

/** Options of a delivery channel. */
export interface ChannelOptions<Input extends StandardSchemaV1, Name extends string = string> {
  /** Any Standard Schema, applied on enqueue and on sending. `send` receives its output. */
  readonly input: ChannelInput<Input, Name>;
  /**
   * Sends one message. If it throws, keelson retries, except after a `PermanentError`. The
   * delivery's ID is the same in each attempt, so a receiver can recognize a retry.
   */
  readonly send: (
    ctx: PipelineContext,
    message: StandardSchemaV1.InferOutput<Input>,
    delivery: { readonly id: string },
  ) => Awaitable<unknown>;
}

export interface EventDeclaration {
  readonly feature: string;
  readonly type: string;
  readonly schema: StandardSchemaV1;
  /** Retention in days; `Infinity` for `keep: true`. Absent if the event is not kept. */
  readonly keptDays?: number;
}

export interface ConsumerDeclaration {
  readonly feature: string;
  /** Full name: `<feature>.<entity>.<name>`, or `<projection>:<event type>`. */
  readonly name: string;
  readonly type: string;
  /** Projection that handles the event instead of `run`. */
  readonly projection?: ProjectionDeclaration;
  readonly concurrency?: Concurrency | undefined;
  readonly run: (ctx: PipelineContext, event: SharedEvent) => unknown;
}

export interface JobDeclaration {
  readonly feature: string;
  /** Full name, `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly input: StandardSchemaV1;
  readonly run: (
    ctx: PipelineContext,
    payload: unknown,
    job: { readonly jobId: string },
  ) => unknown;
  readonly dedupKey?: ((payload: unknown) => string) | undefined;
  readonly dedupScope: "tenant" | "user";
  readonly order?: ((payload: unknown) => string) | undefined;
  readonly concurrency?: Concurrency | undefined;
}

export interface ChannelDeclaration {
  readonly feature: string;
  readonly name: string;
  readonly input: StandardSchemaV1 | undefined;
  readonly send: (
    ctx: PipelineContext,
    message: unknown,
    delivery: { readonly id: string },
  ) => unknown;
}

/** The `ctx` of a projection. It lacks all effects, because a projection only returns items. */
export type ProjectionContext = ReadContext;

/** Run of a projection for one of its versions. */
export interface ProjectionRun {
  /** Version to write: the declared version, or another version that is still active. */
  readonly version: number;
}

export interface ProjectionDeclaration {
  readonly feature: string;
  readonly name: string;
  readonly version: number;
  /** Types in the order of `on`. A type that occurs twice is a duplicate consumer. */
  readonly types: readonly string[];
  readonly on: ReadonlyMap<
    string,
    (ctx: ProjectionContext, event: SharedEvent, projection: ProjectionRun) => unknown
  >;
}

// The casts of options are safe: wrong types are reported, and the server is never built.

export const builtInChannels: readonly string[] = Object.freeze(["log", "webhook"]);

export function event(
  { feature, report }: Declaring,
  type: string,
  schema: unknown,
  options: unknown,
): EventDeclaration {
  const key = `event ${named(type)}`;
  const problem = problemsOf(key, report);
  requireValue("type", type, twoWords("event-type", "event name", "file.created"), problem);
  requireValue("the second argument", schema, required(aSchema), problem);
  const keptDays = defined({ keptDays: keptDaysOf(key, options, report) });
  return { feature, type: named(type), schema: schema as StandardSchemaV1, ...keptDays };
}

const consumerRequirements: Requirements = {
  handler: required(aFunction("pass async (ctx, event) => ...")),
  concurrency: aConcurrency,
};

export function consumer(
  { feature, report }: Declaring,
  event: unknown,
  options: unknown,
): ConsumerDeclaration {
  const type = nameOf(event);
  const { name } = Object(options) as { readonly name?: unknown };
  const fullName = `${feature}.${type.split(".")[0]}.${named(name)}`;
  const problem = problemsOf(fullName, report);
  const given = knownOptions(fullName, options, ["name", "handler", "concurrency"], report);
  if (!isWord(name)) {
    const message = `name ${quoted(name)} of a consumer is not in kebab case`;
    problem("consumer-name", message, 'choose a name for its task, for example "enqueue-scan"');
  }
  requireOptions(given, consumerRequirements, problem);
  const { handler: run, concurrency } = given as Pick<ConsumerDeclaration, "concurrency"> & {
    readonly handler: ConsumerDeclaration["run"];
  };
  return { feature, name: fullName, type, run, concurrency };
}

const jobRequirements: Requirements = {
  input: required(aSchema),
  handler: required(aFunction()),
  dedupKey: aFunction(),
  order: aFunction(),
  dedupScope: {
    accepts: (scope: unknown) => scope === "tenant" || scope === "user",
    rule: "dedup-scope",
    fix: 'use "tenant" or "user"',
  },
  concurrency: aConcurrency,
};

export function job(
  { feature, report }: Declaring,
  name: string,
  options: unknown,
): JobDeclaration {
  const fullName = `${feature}.${named(name)}`;
  const problem = problemsOf(fullName, report);
  const known = ["input", "handler", "dedupKey", "dedupScope", "order", "concurrency"];
  const given = knownOptions(fullName, options, known, report);
  requireValue("name", name, twoWords("job-name", "operation", "file.scan"), problem);
  requireOptions(given, jobRequirements, problem);
  const {
    input,
    handler: run,
    dedupKey,
    dedupScope = "tenant",
    order,
    concurrency,
  } = given as unknown as JobOptions<StandardSchemaV1> & Pick<JobDeclaration, "input">;
  return { feature, name: fullName, input, run, dedupKey, dedupScope, order, concurrency };
}

const channelRequirements = { input: required(aSchema), send: required(aFunction()) };

export function channel(
  { feature, report }: Declaring,
  name: string,
  options: unknown,
): ChannelDeclaration {
  const key = `channel ${named(name)}`;
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, Object.keys(channelRequirements), report);
  if (!isWord(name)) {
    const fix = "name it with lower-case letters, digits and hyphens";
    problem("channel-name", `channel name ${quoted(name)} is not in kebab case`, fix);
  }
  if (builtInChannels.includes(name)) {
    const message = `channel name ${quoted(name)} is keelson's own`;
    problem("channel-reserved", message, "choose another name");
  }
  requireOptions(given, channelRequirements, problem);
  const { input, send } = given as Pick<ChannelDeclaration, "input" | "send">;
  return { feature, name: named(name), input, send };
}
