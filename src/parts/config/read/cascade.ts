import { FrameworkError } from "../../../base/errors/errors.ts";
import type { ConfigKeyDefinition } from "../declare/key.ts";
import { clamp, named, outOfBounds, typeMismatch } from "../declare/value-check.ts";
import type { RowValue } from "./row-cipher.ts";
import type { RowSource } from "./rows.ts";

/** Level that supplied a value (specification 2.2); `missing` if no level did. */
export type ConfigSource = RowSource | "app-override" | "computed" | "default" | "missing";

export interface Resolved {
  readonly value: unknown;
  readonly source: ConfigSource;
}

export interface Misfit {
  readonly source: ConfigSource;
  readonly reason: string;
}

export type OnMisfit = (misfit: Misfit) => void;

/** Values of one key by level. `undefined` is not a value; `null` is a value that does not fit any type. */
export interface Levels {
  /** Rows that are neither deleted nor expired, the narrowest first. */
  readonly rows: readonly { readonly source: RowSource; readonly row: RowValue }[];
  readonly override: unknown;
  readonly frameworkDefault: unknown;
}

export class LockedValueError extends FrameworkError {
  static override readonly name = "LockedValueError";
  /** Key of the key ring that encrypted the secret. */
  readonly ringKey: string;

  constructor(source: RowSource, { locked, ringKey }: Extract<RowValue, { locked: string }>) {
    super("config_unavailable", "Configuration cannot be read at the moment", {
      cause: new Error(`the ${source} of an encrypted key cannot be opened: ${locked}`),
    });
    this.ringKey = ringKey;
  }
}

/**
 * Returns the value of the first level that supplies one (specification 4.1): rows, app-boot
 * override, computed, default. For `"ask-computed"`, {@link cascadeFromComputed} follows.
 * @throws LockedValueError if the deciding row is a secret that cannot be decrypted.
 */
export function cascade(
  definition: ConfigKeyDefinition,
  levels: Levels,
  onMisfit: OnMisfit,
): Resolved | "ask-computed" {
  return (
    suppliedBy(definition, levels, onMisfit) ??
    (definition.computed === undefined ? lastLevel(definition, levels) : "ask-computed")
  );
}

export function cascadeFromComputed(
  definition: ConfigKeyDefinition,
  computed: unknown,
  levels: Pick<Levels, "frameworkDefault">,
  onMisfit: OnMisfit,
): Resolved {
  return suppliedByComputed(definition, computed, onMisfit) ?? lastLevel(definition, levels);
}

export function suppliedBy(
  definition: ConfigKeyDefinition,
  { rows, override }: Pick<Levels, "rows" | "override">,
  onMisfit: OnMisfit,
): Resolved | undefined {
  for (const { source, row } of rows) {
    if ("locked" in row) throw new LockedValueError(source, row);
    if ("value" in row) {
      const fitted = accept(definition, source, row.value, onMisfit);
      if (fitted !== undefined) return fitted;
    } else onMisfit({ source, reason: row.unreadable });
  }
  if (override === undefined) return undefined;
  return accept(definition, "app-override", override, onMisfit);
}

export function suppliedByComputed(
  definition: ConfigKeyDefinition,
  computed: unknown,
  onMisfit: OnMisfit,
): Resolved | undefined {
  return computed === undefined ? undefined : accept(definition, "computed", computed, onMisfit);
}

function lastLevel(
  definition: ConfigKeyDefinition,
  { frameworkDefault }: Pick<Levels, "frameworkDefault">,
): Resolved {
  const value = definition.default ?? frameworkDefault;
  return { value, source: value === undefined ? "missing" : "default" };
}

/**
 * A number out of bounds is clamped if a tenant or a user can set it (specification 4.1, rule 4):
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
  onMisfit: OnMisfit,
): Resolved | undefined {
  const mismatch = typeMismatch(definition, value);
  if (mismatch !== undefined) {
    const reason = `${named(definition, value)} ${mismatch}; the next level decides`;
    onMisfit({ source, reason });
    return undefined;
  }
  const { bounds, scope } = definition;
  const outside = outOfBounds(bounds, value);
  if (bounds === undefined || outside === undefined || source === "app-override")
    return { value, source };
  const asItIs = source === "system-row" || (source === "computed" && scope === "system");
  const use = asItIs ? "it is used unchanged" : "it is clamped";
  onMisfit({ source, reason: `${named(definition, value)} ${outside}; ${use}` });
  // `Number` is safe: only numbers can be out of bounds.
  return { value: asItIs ? value : clamp(Number(value), bounds), source };
}

/** keelson's own defaults (specification 8), so far only numbers. */
const frameworkDefaults: ReadonlyMap<string, number> = new Map([
  ["files:config:max-upload-size-mb", 10],
]);

export function frameworkDefault(
  id: string,
  { type, bounds }: ConfigKeyDefinition,
): number | undefined {
  const value = frameworkDefaults.get(id);
  if (value === undefined || type !== "number") return undefined;
  return bounds === undefined ? value : clamp(value, bounds);
}
