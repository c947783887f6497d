import type { ConfigKeyDefinition, ConfigKeyHandle, ConfigReader } from "../declare/key.ts";
import { clamp, decimalFrom } from "../declare/value-check.ts";

/** Member of a `ctx` that records that a request parameter replaced a configured value. */
export const parameterUsed: unique symbol = Symbol("keelson.parameterUsed");

/** Log fields of a clamped parameter (specification 6, rule 7). */
export type ClampData = {
  /** Identifier of the configuration key. */
  readonly key: string;
  /** Number in the request. */
  readonly original: number;
  /** Number used instead. */
  readonly clamped: number;
  /** Upper bound of the key. */
  readonly max: number;
};

/** Options of {@link resolveConfigOrParam}. */
export interface ParameterOptions {
  /** Called if the parameter is a number out of bounds. Default: no callback. */
  readonly onClamp?: (data: ClampData) => void;
}

/** Options of `ctx.config`. */
export interface ConfigOptions extends ParameterOptions {
  /** The request's parameter for the key, as of `resolveConfigOrParam`. */
  readonly param: unknown;
}

/**
 * Returns the request's parameter, or else the configured value of the key (specification 2.4). A
 * number is parsed and clamped to the bounds; `"true"` and `"1"` are true, any other string is
 * false; a select takes one of its options. The configured value applies if the parameter is absent
 * (`undefined`, `null`; for numbers and selects also blank), not a finite decimal number or not an
 * option. A returned number is always within the key's bounds, whichever level supplied it; a
 * parameter may exceed the tenant's value.
 * @throws Error if the key does not allow request parameters, which is a bug in the handler. Errors
 * of `ctx.config` are rethrown.
 * @example
 * const seconds = await resolveConfigOrParam(ctx, config.expirySeconds, input.expiresSeconds, {
 *   onClamp: (data) => ctx.log.warn("config.per_request_clamped", data),
 * });
 */
export async function resolveConfigOrParam<Value>(
  ctx: ConfigReader,
  handle: ConfigKeyHandle<Value>,
  paramValue: unknown,
  options: ParameterOptions = {},
): Promise<Value> {
  const { id, definition } = handle;
  if (!isAbsent(definition, paramValue)) {
    assertAllowed(id, definition);
    const parameter = fromParameter(id, definition, paramValue, options);
    if (parameter !== undefined) {
      // Safe cast: only keelson knows the symbol; the `ctx` of a test may lack the member.
      (ctx as { [parameterUsed]?(id: string): void })[parameterUsed]?.(id);
      // Safe cast: `fromParameter` returns only values of the key's type.
      return parameter as Value;
    }
  }
  const configured = await ctx.config(handle);
  if (definition.bounds === undefined || typeof configured !== "number") return configured;
  // Safe cast: `configured` is a number, so `Value` is a number type.
  return clamp(configured, definition.bounds) as Value;
}

function isAbsent({ type }: ConfigKeyDefinition, value: unknown): boolean {
  const blankIsAbsent = type === "number" || type === "select";
  return (
    value === undefined ||
    value === null ||
    (blankIsAbsent && typeof value === "string" && value.trim() === "")
  );
}

/** A key may have skipped the validators. */
function assertAllowed(
  id: string,
  { type, encrypted, allowPerRequest, bounds }: ConfigKeyDefinition,
): void {
  const refuse = (problem: string): never => {
    throw new Error(`${id}: a request ${problem}`);
  };
  if (type === "text" || encrypted) {
    const kind = encrypted ? "an encrypted" : "a text";
    refuse(`can never override ${kind} key; call ctx.config(handle) instead`);
  }
  if (!allowPerRequest) {
    refuse(
      "cannot override this key; declare it with allowPerRequest: true, or call ctx.config(handle)",
    );
  }
  if (type === "number" && bounds === undefined)
    refuse("cannot override a number without bounds; declare bounds: { min, max }");
}

function fromParameter(
  id: string,
  definition: ConfigKeyDefinition,
  value: unknown,
  { onClamp }: ParameterOptions,
): unknown {
  switch (definition.type) {
    case "number": {
      const original = numberFrom(value);
      if (original === undefined || definition.bounds === undefined) return undefined;
      const clamped = clamp(original, definition.bounds);
      if (clamped !== original)
        onClamp?.({ key: id, original, clamped, max: definition.bounds.max });
      return clamped;
    }
    case "boolean":
      return value === true || value === "true" || value === "1";
    default:
      return definition.options?.find((option) => option === value);
  }
}

function numberFrom(value: unknown): number | undefined {
  const number = typeof value === "string" ? decimalFrom(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
