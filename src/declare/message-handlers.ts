import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Events } from "../context/names.ts";
import type { PipelineContext } from "../context/pipeline-context.ts";
import type { SharedEvent } from "../events/envelope.ts";
import type { Awaitable } from "./handler.ts";

/** The schema of an event: for a type of {@link Events} one that gives its payload. */
export type EventSchema<Type extends string> = Type extends keyof Events
  ? StandardSchemaV1<unknown, Events[Type]>
  : StandardSchemaV1;

/** An event as its consumers get it. */
export type EventOf<Type extends keyof Events> = SharedEvent<Events[Type]>;

/** How a job is declared. */
export interface JobOptions<Input extends StandardSchemaV1> {
  /** Any Standard Schema; checked where the job is enqueued and where it runs, and the handler gets what it gives. */
  readonly input: Input;
  readonly handler: (ctx: PipelineContext, payload: StandardSchemaV1.InferOutput<Input>) => Awaitable<unknown>;
  /** What makes a job one and the same with another, within its tenant. Default: the whole payload. */
  readonly dedupKey?: (payload: StandardSchemaV1.InferInput<Input>) => string;
  /** Whether equal jobs of two users of a tenant are one job. Default `tenant`: they are. */
  readonly dedupScope?: "tenant" | "user";
  /** Jobs with the same order run one after the other, in the order in which they were enqueued. Default: in no order. */
  readonly order?: (payload: StandardSchemaV1.InferInput<Input>) => string;
}

/** How a channel of deliveries is declared. */
export interface ChannelOptions<Input extends StandardSchemaV1> {
  /** Any Standard Schema; checked where a message is sent from and where it goes out, and `send` gets what it gives. */
  readonly input: Input;
  /**
   * Sends one message. It is tried again where it throws, unless with a `PermanentError`. The delivery's ID is the same at
   * each attempt, for a receiver that can tell a repeat by it.
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
}

/** A declared consumer of an event. */
export interface ConsumerDeclaration {
  readonly feature: string;
  /** The full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly type: string;
  readonly run: (ctx: PipelineContext, event: SharedEvent) => unknown;
}

/** A declared job. */
export interface JobDeclaration {
  readonly feature: string;
  /** The full name: `<feature>.<entity>.<operation>`. */
  readonly name: string;
  readonly input: StandardSchemaV1;
  readonly run: (ctx: PipelineContext, payload: unknown, job: { readonly jobId: string }) => unknown;
  readonly dedupKey?: ((payload: unknown) => string) | undefined;
  readonly dedupScope: "tenant" | "user";
  readonly order?: ((payload: unknown) => string) | undefined;
}

/** A declared channel. */
export interface ChannelDeclaration {
  readonly feature: string;
  readonly name: string;
  readonly input: StandardSchemaV1 | undefined;
  readonly send: (ctx: PipelineContext, message: unknown, delivery: { readonly id: string }) => unknown;
}
