// How declarations and calls were typed before handles: names in interfaces, for `typecheck-handles` of results.json.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type {
  Awaitable,
  EnqueueOptions,
  EventOptions,
  Feature,
  FeatureOptions,
  PipelineContext,
  SharedEvent,
} from "keelson";

// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Events {}
// biome-ignore lint/suspicious/noEmptyInterface: features augment it
export interface Jobs {}

interface Context extends Omit<PipelineContext, "publish" | "enqueue"> {
  readonly publish: <Type extends keyof Events>(type: Type, payload: Events[Type]) => Promise<void>;
  readonly enqueue: <Name extends keyof Jobs>(
    name: Name,
    payload: Jobs[Name],
    options?: EnqueueOptions,
  ) => Promise<{ readonly jobId: string }>;
}

type EventSchema<Type extends string> = Type extends keyof Events
  ? StandardSchemaV1<unknown, Events[Type]>
  : StandardSchemaV1;

type JobInput<Input extends StandardSchemaV1, Name extends string> = Name extends keyof Jobs
  ? [Jobs[Name]] extends [StandardSchemaV1.InferInput<Input>]
    ? Input
    : `${Name} has another payload in Jobs`
  : Input;

interface JobOptions<Input extends StandardSchemaV1, Name extends string = string> {
  readonly input: JobInput<Input, Name>;
  readonly handler: (
    ctx: Context,
    payload: StandardSchemaV1.InferOutput<Input>,
  ) => Awaitable<unknown>;
  readonly dedupKey?: (payload: StandardSchemaV1.InferInput<Input>) => string;
  readonly dedupScope?: "tenant" | "user";
  readonly order?: (payload: StandardSchemaV1.InferInput<Input>) => string;
}

type EventOf<Type extends keyof Events> = SharedEvent<Events[Type]>;

type NameOf<Members, Name extends string> = [keyof Members] extends [never] ? string : Name;

interface Builder<Name extends string = string> {
  event<const Type extends string>(
    type: Type,
    schema: EventSchema<Type>,
    options?: EventOptions,
  ): void;
  on<Type extends keyof Events>(
    type: Type,
    name: string,
    handler: (ctx: Context, event: EventOf<Type>) => Awaitable<unknown>,
  ): void;
  job<const Operation extends string, Input extends StandardSchemaV1>(
    name: Operation,
    options: JobOptions<Input, `${Name}.${Operation}`>,
  ): void;
}

export declare function defineFeature<
  const Members extends object = object,
  const Name extends string = string,
>(
  name: Name,
  // biome-ignore lint/suspicious/noConfusingVoidType: a declaration that exports nothing returns nothing
  declare: (r: Builder<Name>) => Members | void,
  options?: FeatureOptions,
): Feature<Members, NameOf<Members, Name>>;
