import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Channels, Events, Jobs } from "../../base/types/names.ts";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import type { Awaitable } from "./handler.ts";
import type { PipelineContext } from "./pipeline-context.ts";
import type { ProjectionDeclaration } from "./projection-declaration.ts";

/** The schema of an event; for a type of {@link Events}, its output is that payload. */
export type EventSchema<Type extends string> = Type extends keyof Events
  ? StandardSchemaV1<unknown, Events[Type]>
  : StandardSchemaV1;

/** How long an event is kept: for some days, or for ever. */
export type EventOptions =
  | { readonly keepDays: number; readonly keep?: never }
  | { readonly keep: true; readonly keepDays?: never };

/** An event as its consumers get it. */
export type EventOf<Type extends keyof Events> = SharedEvent<Events[Type]>;

/** A schema, or nothing that compiles where the entry of {@link Jobs} has a payload that it does not take. */
type JobInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Jobs
  ? [Jobs[Name]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another payload in Jobs`
  : Input;

/** A schema, or nothing that compiles where the entry of {@link Channels} has a message that it does not take. */
type ChannelInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Channels
  ? [Channels[Name]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another message in Channels`
  : Input;

/** Options of a job. `Name` is its full name, of which {@link Jobs} may have an entry. */
export interface JobOptions<Input extends StandardSchemaV1, Name extends string = string> {
  /** Any Standard Schema, checked when the job is enqueued and when it runs. The handler gets its output. */
  readonly input: JobInput<Input, Name>;
  readonly handler: (
    ctx: PipelineContext,
    payload: StandardSchemaV1.InferOutput<Input>,
  ) => Awaitable<unknown>;
  /** Jobs of a tenant with the same key are duplicates. Default: the whole payload. */
  readonly dedupKey?: (payload: StandardSchemaV1.InferInput<Input>) => string;
  /** `tenant`, the default: equal jobs of two users of a tenant are duplicates. `user`: they are not. */
  readonly dedupScope?: "tenant" | "user";
  /** Jobs with the same result run one after the other, in the order they were enqueued. Default: no order. */
  readonly order?: (payload: StandardSchemaV1.InferInput<Input>) => string;
}

/** Options of a channel of deliveries. */
export interface ChannelOptions<Input extends StandardSchemaV1, Name extends string = string> {
  /** Any Standard Schema, checked when a message is enqueued and when it is sent. `send` gets its output. */
  readonly input: ChannelInput<Input, Name>;
  /**
   * Sends one message. If it throws, the message is retried, except after a `PermanentError`. The delivery's ID is the
   * same in each attempt, so that a receiver can recognise a retry.
   */
  readonly send: (
    ctx: PipelineContext,
    message: StandardSchemaV1.InferOutput<Input>,
    delivery: { readonly id: string },
  ) => Awaitable<unknown>;
}

/** A declared event. */
export interface EventDeclaration {
  readonly feature: string;
  readonly type: string;
  readonly schema: StandardSchemaV1;
  /** For how many days it is kept, `Infinity` for ever; absent where it is not. */
  readonly keptDays?: number;
}

/** A declared consumer of an event. */
export interface ConsumerDeclaration {
  readonly feature: string;
  /** The full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly type: string;
  /** The projection that the event goes into, in the place of `run`. */
  readonly projection?: ProjectionDeclaration;
  readonly run: (ctx: PipelineContext, event: SharedEvent) => unknown;
}

/** A declared job. */
export interface JobDeclaration {
  readonly feature: string;
  /** The full name: `<feature>.<entity>.<operation>`. */
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
}

/** A declared channel. */
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
