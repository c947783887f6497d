import { quoted } from "../errors/quoted.ts";
import type { Channels, Events, Jobs, Queries, Writes } from "./names.ts";

declare const types: unique symbol;

/** Handle of a declaration. Handles are frozen, and work in every server with that declaration. */
export interface Handle<Kind extends string = string> {
  readonly kind: Kind;
  /** Full name, as in logs: `files.file.scan` for a job, `file.created` for an event. */
  readonly name: string;
}

/** Handle that `r.event` returns. `Sent` is published, and consumers receive `Received`. */
export interface EventHandle<Sent, Received> extends Handle<"event"> {
  readonly [types]?: (sent: Sent) => Received;
}

/** Handle that `r.job` returns. */
export interface JobHandle<Payload> extends Handle<"job"> {
  readonly [types]?: (payload: Payload) => void;
}

/** Handle that `r.query` returns. */
export interface QueryHandle<Input, Output> extends Handle<"query"> {
  readonly [types]?: (input: Input) => Output;
}

/** Handle that `r.write` returns. Its `input` schema turns `Input` into `Accepted`. */
export interface WriteHandle<Input, Accepted, Output> extends Handle<"write"> {
  readonly [types]?: (input: Input) => readonly [Accepted, Output];
}

/** Handle that `r.channel` returns. */
export interface ChannelHandle<Message> extends Handle<"channel"> {
  readonly [types]?: (message: Message) => void;
}

/** Handle that `r.metric` returns. */
export interface MetricHandle<Labels> extends Handle<"metric"> {
  readonly [types]?: (labels: Labels) => void;
}

/** Handle that `r.rateLimit` returns. */
export type RateLimitHandle = Handle<"rate-limit">;

/** An event: its handle, or a type in {@link Events}. */
export type AnyEvent = Handle<"event"> | keyof Events;

/** A job: its handle, or a name in {@link Jobs}. */
export type AnyJob = Handle<"job"> | keyof Jobs;

/** A query: its handle, or a name in {@link Queries}. */
export type AnyQuery = Handle<"query"> | keyof Queries;

/** A write: its handle, or a name in {@link Writes}. */
export type AnyWrite = Handle<"write"> | keyof Writes;

/** A channel: its handle, or a name in {@link Channels}. */
export type AnyChannel = Handle<"channel"> | keyof Channels;

// The next four types infer the payload while the compiler matches a call's argument. Taking the
// handle apart afterwards would take more type instantiations. `[keyof Events] extends [never]` is
// decided once for the whole program, so names cost nothing in a program without entries.

/** Parameter for an event, which infers its types from a handle. */
export type EventParameter<Event, Sent, Received> = [keyof Events] extends [never]
  ? EventHandle<Sent, Received>
  : Event extends keyof Events
    ? Event
    : EventHandle<Sent, Received>;

/** Parameter for a job, which infers the payload from a handle. */
export type JobParameter<Job, Payload> = [keyof Jobs] extends [never]
  ? JobHandle<Payload>
  : Job extends keyof Jobs
    ? Job
    : JobHandle<Payload>;

/** Payload of an event: of its entry, or as inferred from the handle. */
export type EventPayload<Event, Inferred> = [keyof Events] extends [never]
  ? Inferred
  : Event extends keyof Events
    ? Events[Event]
    : Inferred;

/** Payload of a job: of its entry, or as inferred from the handle. */
export type JobPayload<Job, Inferred> = [keyof Jobs] extends [never]
  ? Inferred
  : Job extends keyof Jobs
    ? Jobs[Job]
    : Inferred;

/** Payload that consumers of an event receive. */
export type ReceivedOf<Event extends AnyEvent> = Event extends keyof Events
  ? Events[Event]
  : Event extends EventHandle<infer _, infer Received>
    ? Received
    : unknown;

/** Types of a query. */
export type QueryOf<Query extends AnyQuery> = Query extends keyof Queries
  ? Queries[Query]
  : Query extends QueryHandle<infer Input, infer Output>
    ? { readonly input: Input; readonly output: Output }
    : { readonly input: unknown; readonly output: unknown };

/** Types of a write. */
export type WriteOf<Write extends AnyWrite> = Write extends keyof Writes
  ? Writes[Write]
  : Write extends WriteHandle<infer Input, infer Accepted, infer Output>
    ? { readonly input: Input; readonly accepted: Accepted; readonly output: Output }
    : { readonly input: unknown; readonly accepted: unknown; readonly output: unknown };

/** Input of a handler. A handler given by name takes any. */
export type InputOf<Handler> =
  Handler extends QueryHandle<infer Input, infer _>
    ? Input
    : Handler extends WriteHandle<infer Input, infer _Accepted, infer _Output>
      ? Input
      : unknown;

/** Body of a handler's answer. */
export type AnswerOf<Handler> =
  Handler extends QueryHandle<infer _, infer Output>
    ? Output
    : Handler extends WriteHandle<infer _Input, infer _Accepted, infer Output>
      ? Output
      : unknown;

/** Message of a channel. */
export type MessageOf<Channel extends AnyChannel> = Channel extends keyof Channels
  ? Channels[Channel]
  : Channel extends ChannelHandle<infer Message>
    ? Message
    : Readonly<Record<string, unknown>>;

/** Labels of a metric. A metric given by name can have any. */
export type LabelsOf<Metric> =
  Metric extends MetricHandle<infer Labels> ? Labels : Readonly<Record<string, string | undefined>>;

/** Returns the full name of a handle, or the given name. Plain JavaScript may pass any value. */
export function nameOf(given: unknown): string {
  if (typeof given === "string") return given;
  const name = (given as Partial<Handle> | null | undefined)?.name; // safe: any value but null has members
  return typeof name === "string" ? name : quoted(given);
}

export function handleOf<Kind extends string>(kind: Kind, name: string): Handle<Kind> {
  return Object.freeze({ kind, name });
}
