import { ValidationError } from "../../base/errors/errors.ts";
import type { SetConfigOptions, UndoConfigOptions } from "../../parts/config/operate/change.ts";
import type { ConfigHistoryOptions } from "../../parts/config/operate/config-history.ts";

/** Input of the configuration routes. The functions that receive it check its values. */
export type ConfigInput = SetConfigOptions &
  UndoConfigOptions &
  ConfigHistoryOptions & { readonly value?: unknown; readonly key?: string };

const numbers: readonly string[] = ["expectedVersion", "version", "before", "limit"];
const maxFields = 20;

/**
 * Returns the fields of an input, without those that are `null`, except `value`. Converts the
 * numbers of a query.
 * @throws ValidationError with each field that the route does not accept.
 */
export function configInput(allowed: readonly string[], given: unknown): ConfigInput {
  const input = Object.entries(given as Readonly<Record<string, unknown>>); // safe: a handler without a schema gets an object
  const unknown = input.filter(([name]) => !allowed.includes(name));
  if (unknown.length > 0) {
    const takes = allowed.filter((name) => name !== "key").join(", ");
    throw new ValidationError(
      unknown.slice(0, maxFields).map(([field]) => ({
        field: field.slice(0, 200),
        error: `is not known; the route takes ${takes}`,
      })),
    );
  }
  const present = input.filter(([name, value]) => name === "value" || value !== null);
  // Safe cast: only known names are left, and the functions check each value.
  return Object.fromEntries(
    present.map(([name, value]) => [name, numbers.includes(name) ? numberOf(value) : value]),
  ) as ConfigInput;
}

function numberOf(value: unknown): unknown {
  return typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
}
