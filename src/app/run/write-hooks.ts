import { errorLog } from "../../base/errors/describe.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { bodyOf } from "../../parts/http/response.ts";
import { checkPayload } from "../../parts/messages/envelope.ts";
import type { RunHooks } from "../ctx/work.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { HookDeclaration } from "../handlers/hooks.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { changedInput, copied } from "./changed-input.ts";

export interface WriteHooks extends RunHooks {
  /** Runs the `after` hooks once the result of the last `itemsOf` call is stored. Never throws. */
  after(): Promise<void>;
}

/** Maximum time that a stored answer waits for the `after` hooks, in milliseconds. */
const afterMs = 2_000;
/** Remaining time of the process that is reserved for sending the answer, in milliseconds. */
const answerMs = 200;

export function createWriteHooks(
  scope: RequestScope,
  { name, input: schema }: Pick<HandlerDeclaration, "name" | "input">,
  hooks: readonly HookDeclaration[],
  rawInput: () => unknown,
): WriteHooks {
  let known: { readonly ctx: PipelineContext; readonly input: unknown } | undefined;
  let result: unknown;
  // The cast is safe: every run calls `before` first.
  const begun = () => known as NonNullable<typeof known>;

  const accepted = (feature: string, changed: unknown): Promise<unknown> =>
    checkPayload(schema, changed, (problems) => {
      const what = `the input that its hook of ${feature} returned does not fit its schema (${problems})`;
      return new TypeError(`${name}: ${what}; mend the hook`);
    });

  const runAfter = async ({ feature, after }: HookDeclaration): Promise<void> => {
    const { ctx, input } = begun();
    try {
      await after?.(ctx, input, result);
    } catch (error) {
      scope.log.error("hook.after_failed", { hook: feature, ...errorLog(error).data });
    }
  };

  return {
    before: async (ctx, given) => {
      let input = given;
      let raw: unknown;
      for (const { feature, before } of hooks) {
        if (before === undefined) continue;
        const known = copied(input);
        const changed = await before(ctx, input);
        if (changed === undefined) continue;
        raw =
          schema === undefined
            ? changed
            : changedInput({ raw: raw ?? rawInput(), accepted: known }, changed);
        input = await accepted(feature, raw);
      }
      known = { ctx, input };
      return input;
    },
    itemsOf: async (received) => {
      const { ctx, input } = begun();
      result = bodyOf(received);
      const items: CommitItem[] = [];
      for (const { feature, commit } of hooks) {
        const added = await commit?.(ctx, input, result);
        if (Array.isArray(added)) items.push(...added);
        else if (commit !== undefined)
          throw new TypeError(
            `${name}: commit of the hook of ${feature} returned no list of items`,
          );
      }
      return items;
    },
    after: async () => {
      const waiting = hooks.filter(({ after }) => after !== undefined);
      if (waiting.length === 0) return;
      const { log, deadlineMs, runtime } = scope;
      const running = (async () => {
        for (const hook of waiting) await runAfter(hook);
        return true;
      })();
      const leftMs =
        deadlineMs === undefined ? afterMs : deadlineMs - runtime.clock.now() - answerMs;
      if (await within(running, Math.max(0, Math.min(afterMs, leftMs)))) return;
      log.warn("hook.after_late", { hooks: waiting.map(({ feature }) => feature) });
    },
  };
}

function within(work: Promise<boolean>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
