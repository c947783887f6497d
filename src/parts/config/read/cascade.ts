import { FrameworkError } from "../../../base/errors/errors.ts";
import type { ConfigKeyDefinition } from "../declare/key.ts";
import { clamp, named, outOfBounds, typeMismatch } from "../declare/value-check.ts";
import type { RowValue } from "./row-cipher.ts";
import type { RowSource } from "./rows.ts";

/** The level that supplied a value (specification 2.2); `missing` where none did. */
export type ConfigSource = RowSource | "app-override" | "computed" | "default" | "missing";

/** A value, and the level it comes from. */
export interface Resolved {
  readonly value: unknown;
  readonly source: ConfigSource;
}

/** A value that does not fit its declaration, or not as it is. */
export interface Misfit {
  readonly source: ConfigSource;
  /** What is wrong with the value, and what was done about it. */
  readonly reason: string;
}

/** What the levels of one key hold. `undefined` means that a level has nothing; `null` is a value, and fits no key. */
export interface Levels {
  /** The rows that count, the narrowest first. */
  readonly rows: readonly { readonly source: RowSource; readonly row: RowValue }[];
  readonly override: unknown;
  /** The last level: what keelson itself has for the key. */
  readonly frameworkDefault: unknown;
}

/** A secret that does not open: 503 `config_unavailable`. */
export class LockedValueError extends FrameworkError {
  static override readonly name = "LockedValueError";
  /** The key of the ring that it was sealed with. */
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
 * computed, default. Where it is the computed level's turn it asks for its value, with which
 * the caller goes on to {@link cascadeFromComputed}.
 *
 * @throws LockedValueError where it is the turn of a row whose secret does not open.
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

/** The rest of the cascade, with what `computed` returned. */
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
 * Holds a value against the declaration. A number out of bounds is clamped where a tenant or
 * a user has a say in it; the operators' values are used as they are (specification 4.1, rule 4):
 *
 * | source                | number out of bounds      |
 * |-----------------------|---------------------------|
 * | user-row, tenant-row  | clamped                   |
 * | system-row            | as it is                  |
 * | computed              | like a row of the key's scope |
 * | app-override          | as it is, checked at boot |
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
  // `outOfBounds` finds only numbers outside.
  return { value: asItIs ? value : clamp(Number(value), bounds), source };
}

function refuse(
  source: ConfigSource,
  reason: string,
  onMisfit: (misfit: Misfit) => void,
): undefined {
  onMisfit({ source, reason });
}
