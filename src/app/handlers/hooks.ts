import type { CommitItem } from "../../base/types/database.ts";
import type { Writes } from "../../base/types/names.ts";
import type { Awaitable } from "./handler.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/** The `ctx` of `before` and `commit`. It has no `commit`, because a hook returns its items. */
export type HookContext = Omit<PipelineContext, "commit">;

/** The `ctx` of `after`. The run has committed, so no effect can join its commit. */
export type AfterHookContext = Omit<PipelineContext, "commit" | "publish" | "delivery" | "step">;

/** Extensions of a write of any feature. At least one is required. */
export interface HookOptions<Name extends keyof Writes> {
  /**
   * Runs before the handler. Returns nothing, or a changed input such as `{ ...input, title }`,
   * which the write's `input` schema checks again: with the new value of each changed member, and
   * the client's original value of every other one.
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
   * Returns items for the transaction of `ctx.commit`, or otherwise for the one that completes the
   * write's claim. `result` is the body that it stores. May be called again for another attempt.
   */
  readonly commit?: (
    ctx: HookContext,
    input: Writes[Name]["accepted"],
    result: Writes[Name]["output"],
  ) => Awaitable<readonly CommitItem[]>;
  /**
   * Runs at most once, after the result is recorded. The answer waits up to 2 seconds for it and
   * never changes. A failure is logged as `hook.after_failed`. Use an event or a job for what must
   * happen.
   */
  readonly after?: (
    ctx: AfterHookContext,
    input: Writes[Name]["accepted"],
    result: Writes[Name]["output"],
  ) => Awaitable<unknown>;
}

/** Each member is a new value for the schema, or one that the schema returned. */
type ChangedInput<Input, Accepted> = {
  readonly [Key in keyof Input]: Input[Key] | (Key extends keyof Accepted ? Accepted[Key] : never);
};

export interface HookDeclaration {
  readonly feature: string;
  /** Full name. */
  readonly write: string;
  readonly before: ((ctx: PipelineContext, input: unknown) => unknown) | undefined;
  readonly commit: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
  readonly after: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
}
