import { isDeepStrictEqual } from "node:util";
import { errorLog } from "../../base/errors/describe.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { bodyOf } from "../../parts/http/response.ts";
import { checkPayload } from "../../parts/messages/envelope.ts";
import { comparable } from "../../parts/once/fingerprint.ts";
import { waitWithin } from "../ctx/effect-run.ts";
import type { RunHooks } from "../ctx/work.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { HookDeclaration } from "../handlers/hooks.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RequestScope } from "../runtime/scope.ts";

export interface WriteHooks extends RunHooks {
  /** Called once the result of the last `itemsOf` call is stored. Never throws. */
  after(): Promise<void>;
}

/** Longest wait of a stored answer for the `after` hooks, in milliseconds. */
const afterMs = 2_000;

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
      return new TypeError(`${name}: ${what}; fix the hook`);
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
        const returned = await before(ctx, input);
        if (returned === undefined && isDeepStrictEqual(known, input)) continue;
        const changed = returned === undefined ? input : returned;
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
      const { log } = scope;
      const running = (async () => {
        for (const hook of waiting) await runAfter(hook);
        return true;
      })();
      if (await within(running, waitWithin(scope, afterMs))) return;
      log.warn("hook.after_late", { hooks: waiting.map(({ feature }) => feature) });
    },
  };
}

function within(work: Promise<boolean>, limitMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, limitMs, false);
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

interface AcceptedInput {
  readonly raw: unknown;
  readonly accepted: unknown;
}

/**
 * Merges the input that a hook returned into the raw input. Members that the hook changed get the
 * hook's values. All others keep their raw values, so the schema never transforms its own output.
 *
 * @param accepted - copy from before the hook, which may have changed the input in place
 */
export function changedInput({ raw, accepted: given }: AcceptedInput, changed: unknown): unknown {
  if (isDeepStrictEqual(given, changed)) return raw;
  if (Array.isArray(raw) && Array.isArray(given) && Array.isArray(changed)) {
    if (raw.length !== given.length) return changed;
    // Finds the raw value of each item, because hooks may add, remove and sort items.
    const placeOf = placesOf(given);
    return changed.map((item, index) => {
      const at = placeOf(item) ?? index;
      return at < raw.length ? changedInput({ raw: raw[at], accepted: given[at] }, item) : item;
    });
  }
  if (!isPlain(raw) || !isPlain(given) || !isPlain(changed)) return changed;
  const merged: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(changed)) {
    const isSame = Object.hasOwn(given, name) && isDeepStrictEqual(given[name], value);
    if (Object.hasOwn(raw, name))
      merged[name] = changedInput({ raw: raw[name], accepted: given[name] }, value);
    // Skips members that the schema added, such as defaults, because the schema adds them again.
    else if (!isSame) merged[name] = value;
  }
  return merged;
}

/**
 * Returns a function that finds the first item with the same content. It compares digests, because a
 * client decides how many items there are: comparing each with all others could take minutes.
 */
function placesOf(items: readonly unknown[]): (item: unknown) => number | undefined {
  /** Objects whose content cannot be read, which are the same only as themselves. */
  const opaque = new Map<unknown, number>();
  const digest = (value: unknown, level: number): string => {
    if (level < maxLevels && Array.isArray(value))
      return `[${value.map((item) => digest(item, level + 1))}]`;
    if (level < maxLevels && isPlain(value)) {
      const names = Object.keys(value).sort();
      return `{${names.map((name) => `${JSON.stringify(name)}:${digest(value[name], level + 1)}`)}}`;
    }
    const text = level < maxLevels ? comparable(value) : undefined;
    if (text !== undefined) return text;
    const number = opaque.get(value) ?? opaque.size;
    opaque.set(value, number);
    return `#${number}`;
  };
  const places = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    const text = digest(item, 0);
    if (!places.has(text)) places.set(text, index);
  }
  return (item) => places.get(digest(item, 0));
}

/** Depth below which a copy shares its members with the original. */
const maxLevels = 64;

/** Copies arrays and plain objects, so that a hook cannot change the original. */
export function copied(input: unknown, level = 0): unknown {
  if (level === maxLevels) return input;
  if (Array.isArray(input)) return input.map((item) => copied(item, level + 1));
  if (!isPlain(input)) return input;
  const copy = Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, copied(value, level + 1)]),
  );
  return Object.getPrototypeOf(input) === null ? Object.setPrototypeOf(copy, null) : copy;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
