import type { CommitItem } from "../../base/types/database.ts";
import type { Writes } from "../../base/types/names.ts";
import type { Awaitable } from "./handler.ts";
import type { PipelineContext } from "./pipeline-context.ts";

/**
 * The `ctx` of `before` and `commit`: the handler's `ctx` without `commit`, because a hook returns
 * its items.
 */
export type HookContext = Omit<PipelineContext, "commit">;

/** The `ctx` of `after`. The run has committed, so no effect can join its commit. */
export type AfterHookContext = Omit<PipelineContext, "commit" | "publish" | "delivery" | "step">;

/**
 * Extensions that a feature adds to a write of any feature. At least one of the three is required.
 */
export interface HookOptions<Name extends keyof Writes> {
  /**
   * Runs before the handler, with its input. Returns nothing, or a changed input such as
   * `{ ...input, title }`. The `input` schema of the write checks the changed input again: it
   * receives the new value of each changed member, and the client's original value of every other
   * member.
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
   * Returns items to write in the write's transaction: the transaction of `ctx.commit`, or
   * otherwise the one that completes its claim. `result` is the body that this transaction stores.
   * May be called again for another attempt.
   */
  readonly commit?: (
    ctx: HookContext,
    input: Writes[Name]["accepted"],
    result: Writes[Name]["output"],
  ) => Awaitable<readonly CommitItem[]>;
  /**
   * Runs at most once, after the result is recorded. The answer waits up to 2 seconds for it and
   * never changes. A failure is logged as `hook.after_failed`. Use an event or a job for anything
   * that must happen.
   */
  readonly after?: (
    ctx: AfterHookContext,
    input: Writes[Name]["accepted"],
    result: Writes[Name]["output"],
  ) => Awaitable<unknown>;
}

/** Input whose members are new values for the schema or values that the schema returned. */
type ChangedInput<Input, Accepted> = {
  readonly [Key in keyof Input]: Input[Key] | (Key extends keyof Accepted ? Accepted[Key] : never);
};

/** Hook in the registry. Its types are checked in its declaration. */
export interface HookDeclaration {
  readonly feature: string;
  /** Full name of the hooked write. */
  readonly write: string;
  readonly before: ((ctx: PipelineContext, input: unknown) => unknown) | undefined;
  readonly commit: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
  readonly after: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
}
