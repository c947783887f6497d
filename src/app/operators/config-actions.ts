import { NotFoundError, ValidationError } from "../../base/errors/errors.ts";
import { refuseWrong, unknownFields } from "../../base/errors/wrong-fields.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import {
  commitChange,
  resetChange,
  type SetConfigOptions,
  setChange,
  type UndoConfigOptions,
  undoChange,
} from "../../parts/config/operate/change.ts";
import {
  type ConfigHistoryOptions,
  configHistory,
} from "../../parts/config/operate/config-history.ts";
import { listConfig } from "../../parts/config/operate/explain-config.ts";
import { optionsOf } from "../../parts/config/operate/operator-call.ts";
import type { TargetKey } from "../../parts/config/operate/target.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { explainConfig } from "./explain.ts";

type Keys = ReadonlyMap<string, TargetKey>;

export const configActions = Object.freeze({
  list: async (keys: Keys, ctx: PipelineContext, given: unknown) => ({
    items: await listConfig(ctx, [...keys.values()], configInput(optionsOf.explainConfig, given)),
  }),
  explain: onKey(optionsOf.explainConfig, explainConfig),
  set: onKey(["value", ...optionsOf.setConfig], (ctx, key, { value, ...input }) => {
    if (value !== undefined) assertInBody(ctx);
    return commitChange(ctx, key, setChange(key, value, input));
  }),
  reset: onKey(optionsOf.resetConfig, (ctx, key, input) =>
    commitChange(ctx, key, resetChange(input)),
  ),
  history: onKey(optionsOf.configHistory, configHistory),
  undo: onKey(optionsOf.undoConfig, (ctx, key, input) =>
    commitChange(ctx, key, undoChange(key, input)),
  ),
});

function onKey(
  allowed: readonly string[],
  run: (ctx: PipelineContext, key: TargetKey, input: ConfigInput) => Promise<unknown>,
) {
  return (keys: Keys, ctx: PipelineContext, given: unknown): Promise<unknown> => {
    const { key: id = "", ...input } = configInput(["key", ...allowed], given);
    const key = keys.get(id);
    if (key === undefined) throw new NotFoundError("config key", id.slice(0, 256));
    return run(ctx, key, input);
  };
}

/** Rejects a value that is not in the body, because proxies log URLs. */
function assertInBody({ request }: PipelineContext): void {
  const { rawBody } = request as RequestView; // safe: only routes call these handlers
  // A decoder drops a byte order mark, as the parser of the input did.
  const body: unknown = rawBody.length === 0 ? {} : JSON.parse(new TextDecoder().decode(rawBody));
  if (typeof body === "object" && body !== null && Object.hasOwn(body, "value")) return;
  throw new ValidationError([{ field: "value", error: "has to be in the body" }]);
}

/** Input of the configuration routes. The functions that receive it check its values. */
export type ConfigInput = SetConfigOptions &
  UndoConfigOptions &
  ConfigHistoryOptions & { readonly value?: unknown; readonly key?: string };

const numbers: readonly string[] = ["expectedVersion", "version", "before", "limit"];

/**
 * Drops fields that are `null`, except `value`, and converts the numbers of a query.
 * @throws ValidationError with each field that the route does not accept.
 */
export function configInput(allowed: readonly string[], given: unknown): ConfigInput {
  const input = given as Readonly<Record<string, unknown>>; // safe: a handler without a schema gets an object
  const takes = allowed.filter((name) => name !== "key").join(", ");
  refuseWrong(unknownFields(input, allowed, `the route takes ${takes}`));
  const present = Object.entries(input).filter(
    ([name, value]) => name === "value" || value !== null,
  );
  // Safe cast: only known names are left, and the functions check each value.
  return Object.fromEntries(
    present.map(([name, value]) => [name, numbers.includes(name) ? numberOf(value) : value]),
  ) as ConfigInput;
}

function numberOf(value: unknown): unknown {
  return typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
}
