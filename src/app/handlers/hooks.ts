import type { BootProblem } from "../../base/errors/boot.ts";
import { nearest, quoted } from "../../base/errors/quoted.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { type AnyWrite, nameOf, type WriteOf } from "../../base/types/handles.ts";
import type { Awaitable } from "./handler.ts";
import type { AfterHookContext, HookContext, PipelineContext } from "./pipeline-context.ts";
import {
  aFunction,
  type Declaring,
  knownOptions,
  problemsOf,
  requireOptions,
} from "./requirements.ts";

/** Functions that extend a write of any feature. At least one is required. */
export interface HookOptions<Write extends AnyWrite> {
  /**
   * Runs before the handler. Returns nothing, or a changed input such as `{ ...input, title }`. An
   * input that it changes in place counts as returned. The write's `input` schema validates a
   * changed input again: the new value of each changed member, and the client's original value of
   * every other member.
   * @throws a typed error to refuse the write.
   */
  readonly before?: (
    ctx: HookContext,
    input: WriteOf<Write>["accepted"],
  ) => Awaitable<
    | WriteOf<Write>["input"]
    | ChangedInput<WriteOf<Write>["input"], WriteOf<Write>["accepted"]>
    // biome-ignore lint/suspicious/noConfusingVoidType: a hook without changes does not return a value
    | void
  >;
  /**
   * Returns items for the transaction of `ctx.commit` or, if the handler does not call it, of the
   * commit that completes the write's claim. `result` is the response body that this transaction
   * stores. keelson may call the hook again for another attempt.
   */
  readonly commit?: (
    ctx: HookContext,
    input: WriteOf<Write>["accepted"],
    result: WriteOf<Write>["output"],
  ) => Awaitable<readonly CommitItem[]>;
  /**
   * Runs at most once, after the result is stored. The answer waits up to 2 seconds for the hook
   * and never changes. A failure is logged as `hook.after_failed`. For work that must happen, use
   * an event or a job.
   */
  readonly after?: (
    ctx: AfterHookContext,
    input: WriteOf<Write>["accepted"],
    result: WriteOf<Write>["output"],
  ) => Awaitable<unknown>;
}

type ChangedInput<Input, Accepted> = {
  readonly [Key in keyof Input]: Input[Key] | (Key extends keyof Accepted ? Accepted[Key] : never);
};

export interface HookDeclaration {
  readonly feature: string;
  readonly write: string;
  readonly before: ((ctx: PipelineContext, input: unknown) => unknown) | undefined;
  readonly commit: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
  readonly after: ((ctx: PipelineContext, input: unknown, result: unknown) => unknown) | undefined;
}

const run = aFunction("pass async (ctx, input) => ...");
const hookRequirements = { before: run, commit: run, after: run };

export function hook(
  { feature, report }: Declaring,
  write: unknown,
  options: unknown,
): HookDeclaration {
  const name = nameOf(write);
  const key = hookKey(name);
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, Object.keys(hookRequirements), report);
  // Safe cast: `requireOptions` reports wrong types, and a server with problems is never built.
  const { before, commit, after } = given as unknown as HookDeclaration;
  if ([before, commit, after].every((run) => run === undefined))
    problem("hook-empty", "it does nothing", "pass before, commit or after, each a function");
  requireOptions(given, hookRequirements, problem);
  return { feature, write: name, before, commit, after };
}

export function hookProblems({
  hooks,
  handlers,
}: {
  readonly hooks: ReadonlyMap<string, readonly HookDeclaration[]>;
  readonly handlers: ReadonlyMap<string, { readonly name: string; readonly kind: string }>;
}): BootProblem[] {
  const writes = [...handlers.values()]
    .filter(({ kind }) => kind === "write")
    .map(({ name }) => name);
  return [...hooks.values()].flat().flatMap(({ feature, write }): BootProblem[] => {
    const key = hookKey(write);
    const kind = handlers.get(write)?.kind;
    if (kind === "write") return [];
    if (kind === "query") {
      const message = `${quoted(write)} is a query, and only writes have hooks`;
      return [{ feature, key, rule: "hook-query", message, fix: "hook a write" }];
    }
    const message = `no feature of this server declares the write ${quoted(write)}`;
    const meant = nearest(write, writes);
    const fix =
      meant === undefined
        ? "name a write, or add the feature that declares it"
        : `did you mean ${quoted(meant)}?`;
    return [{ feature, key, rule: "hook-undeclared", message, fix }];
  });
}

function hookKey(write: string): string {
  return `hook ${write}`;
}
