import { FrameworkError } from "../../../base/errors/errors.ts";
import type { ConfigKeyDefinition } from "../declare/key.ts";
import { clamp, named, outOfBounds, typeMismatch } from "../declare/value-check.ts";
import type { RowValue } from "./row-cipher.ts";
import type { RowSource } from "./rows.ts";

/** Level that supplied a value (specification 2.2); `missing` if no level did. */
export type ConfigSource = RowSource | "app-override" | "computed" | "default" | "missing";

/** Value and the level that supplied it. */
export interface Resolved {
  readonly value: unknown;
  readonly source: ConfigSource;
}

/** Problem with a value that violates its declaration. */
export interface Misfit {
  readonly source: ConfigSource;
  /** The violation and its consequence, for the log. */
  readonly reason: string;
}

/**
 * Values of one key on all levels; `undefined` for none. `null` is a value that matches no type.
 */
export interface Levels {
  /** Rows that count, the narrowest first. */
  readonly rows: readonly { readonly source: RowSource; readonly row: RowValue }[];
  readonly override: unknown;
  readonly frameworkDefault: unknown;
}

export class LockedValueError extends FrameworkError {
  static override readonly name = "LockedValueError";
  /** Key of the ring that sealed the secret. */
  readonly ringKey: string;

  constructor(
    source: RowSource,
    { locked, ringKey }: { readonly locked: string; readonly ringKey: string },
  ) {
    super("config_unavailable", "Configuration cannot be read at the moment", {
      cause: new Error(`the ${source} of an encrypted key cannot be opened: ${locked}`),
    });
    this.ringKey = ringKey;
  }
}

/**
 * Finds the first level that supplies a value (specification 4.1): rows, app-boot override,
 * computed, default. For `"ask-computed"` the caller computes the value and passes it to {@link
 * cascadeFromComputed}.
 *
 * @throws LockedValueError if the next level is a secret that cannot be opened.
 */
export function cascade(
  definition: ConfigKeyDefinition,
  levels: Levels,
  onMisfit: (misfit: Misfit) => void,
): Resolved | "ask-computed" {
  for (const { source, row } of levels.rows) {
    if ("locked" in row) throw new LockedValueError(source, row);
    const fitted =
      "value" in row
        ? accept(definition, source, row.value, onMisfit)
        : refuse(source, row.unreadable, onMisfit);
    if (fitted !== undefined) return fitted;
  }
  if (levels.override !== undefined) {
    const fitted = accept(definition, "app-override", levels.override, onMisfit);
    if (fitted !== undefined) return fitted;
  }
  return definition.computed === undefined ? lastLevel(definition, levels) : "ask-computed";
}

export function cascadeFromComputed(
  definition: ConfigKeyDefinition,
  computed: unknown,
  levels: Pick<Levels, "frameworkDefault">,
  onMisfit: (misfit: Misfit) => void,
): Resolved {
  const fitted =
    computed === undefined ? undefined : accept(definition, "computed", computed, onMisfit);
  return fitted ?? lastLevel(definition, levels);
}

function lastLevel(
  definition: ConfigKeyDefinition,
  { frameworkDefault }: Pick<Levels, "frameworkDefault">,
): Resolved {
  const value = definition.default ?? frameworkDefault;
  return { value, source: value === undefined ? "missing" : "default" };
}

/**
 * Checks a value against the declaration. A number out of bounds is clamped if a tenant or a user
 * can set it. Values from operators stay unchanged (specification 4.1, rule 4):
 *
 * | source                | number out of bounds          |
 * |-----------------------|-------------------------------|
 * | user-row, tenant-row  | clamped                       |
 * | system-row            | unchanged                     |
 * | computed              | like a row of the key's scope |
 * | app-override          | unchanged, checked at boot    |
 */
function accept(
  definition: ConfigKeyDefinition,
  source: ConfigSource,
  value: unknown,
  onMisfit: (misfit: Misfit) => void,
): Resolved | undefined {
  const mismatch = typeMismatch(definition, value);
  if (mismatch !== undefined) {
    return refuse(
      source,
      `${named(definition, value)} ${mismatch}; the next level decides`,
      onMisfit,
    );
  }
  const { bounds, scope } = definition;
  const outside = outOfBounds(bounds, value);
  if (bounds === undefined || outside === undefined || source === "app-override")
    return { value, source };
  const asItIs = source === "system-row" || (source === "computed" && scope === "system");
  onMisfit({
    source,
    reason: `${named(definition, value)} ${outside}; ${asItIs ? "it is used as it is" : "it is clamped"}`,
  });
  // Only numbers can be out of bounds.
  return { value: asItIs ? value : clamp(Number(value), bounds), source };
}

function refuse(
  source: ConfigSource,
  reason: string,
  onMisfit: (misfit: Misfit) => void,
): undefined {
  onMisfit({ source, reason });
}
