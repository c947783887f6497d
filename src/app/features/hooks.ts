import type { CommitItem } from "../../base/types/database.ts";
import type { Writes } from "../../base/types/names.ts";
import type { Awaitable } from "./handler.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/** The `ctx` of `before` and `commit`: the handler's own, except that items are returned and not committed. */
export type HookContext = Omit<PipelineContext, "commit">;

/** The `ctx` of `after`. The run has committed, so nothing can join its commit any more. */
export type AfterHookContext = Omit<PipelineContext, "commit" | "publish" | "delivery" | "step">;

/** What a feature adds to a write, its own or another's. At least one of the three. */
export interface HookOptions<Name extends keyof Writes> {
  /**
   * Runs before the handler, with its input. Returns nothing, or a changed input, such as `{ ...input, title }`. The
   * write's `input` schema checks that again: transforms get the members that changed, of all others what the client sent.
   *
   * @throws a typed error to refuse the write.
   */
  readonly before?: (
    ctx: HookContext,
    input: Writes[Name]["accepted"],
  ) => Awaitable<
    // biome-ignore lint/suspicious/noConfusingVoidType: a hook that changes nothing returns nothing
    Writes[Name]["input"] | ChangedInput<Writes[Name]["input"], Writes[Name]["accepted"]> | void
  >;
  /**
   * Returns items that the write's own transaction takes along: that of `ctx.commit`, otherwise the one that completes its
   * claim. `result` is the body that this transaction stores. It may be asked again, for another attempt.
   */
  readonly commit?: (
    ctx: HookContext,
    input: Writes[Name]["accepted"],
    result: Writes[Name]["output"],
  ) => Awaitable<readonly CommitItem[]>;
  /**
   * Runs once the result is noted, at most once. The answer waits for it for a moment, at most 2 seconds, and never changes: a
   * failure is logged as `hook.after_failed`. What has to happen belongs in an event or a job.
   */
  readonly after?: (
    ctx: AfterHookContext,
    input: Writes[Name]["accepted"],
    result: Writes[Name]["output"],
  ) => Awaitable<unknown>;
}

/** An input in which each member is a new value for the schema, or as the schema gave it. */
type ChangedInput<Input, Accepted> = {
  readonly [Key in keyof Input]: Input[Key] | (Key extends keyof Accepted ? Accepted[Key] : never);
};

/** A hook as the registry keeps it: its types are checked where it is declared. */
export interface HookDeclaration {
  /** The feature that hooks. */
  readonly feature: string;
  /** The full name of the write. */
  readonly write: string;
  readonly before: ((ctx: PipelineContext, input: unknown) => unknown) | undefined;
  readonly commit: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
  readonly after: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
}
