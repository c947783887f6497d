import type { ConfigKeyDefinition } from "../declare/key.ts";
import {
  cascade,
  cascadeFromComputed,
  type Levels,
  type Misfit,
  type Resolved,
} from "./cascade.ts";

/**
 * Returns the value that the rows or the app-boot override supply by themselves; `undefined` if a
 * lower level would decide.
 */
export function suppliedBy(
  definition: ConfigKeyDefinition,
  levels: Pick<Levels, "rows" | "override">,
  onMisfit: (misfit: Misfit) => void,
): Resolved | undefined {
  return supplied(cascade(bare(definition), { ...levels, frameworkDefault: undefined }, onMisfit));
}

/**
 * Returns the value that a computed result supplies by itself; `undefined` if a lower level would
 * decide.
 */
export function suppliedByComputed(
  definition: ConfigKeyDefinition,
  computed: unknown,
  onMisfit: (misfit: Misfit) => void,
): Resolved | undefined {
  return supplied(
    cascadeFromComputed(bare(definition), computed, { frameworkDefault: undefined }, onMisfit),
  );
}

/**
 * Removes the lower levels from the declaration, so that the cascade's result comes from the given
 * level.
 */
function bare({
  default: _default,
  computed: _computed,
  ...definition
}: ConfigKeyDefinition): ConfigKeyDefinition {
  return definition;
}

function supplied(resolved: ReturnType<typeof cascade>): Resolved | undefined {
  return resolved !== "ask-computed" && resolved.source !== "missing" ? resolved : undefined;
}
