import type { ConfigKeyDefinition } from "../declare/key.ts";
import {
  cascade,
  cascadeFromComputed,
  type Levels,
  type Misfit,
  type Resolved,
} from "./cascade.ts";

/** Returns what the rows or the app-boot override supply by themselves. */
export function suppliedBy(
  definition: ConfigKeyDefinition,
  levels: Pick<Levels, "rows" | "override">,
  onMisfit: (misfit: Misfit) => void,
): Resolved | undefined {
  return supplied(cascade(bare(definition), { ...levels, frameworkDefault: undefined }, onMisfit));
}

/** Returns what a computed result supplies by itself. */
export function suppliedByComputed(
  definition: ConfigKeyDefinition,
  computed: unknown,
  onMisfit: (misfit: Misfit) => void,
): Resolved | undefined {
  return supplied(
    cascadeFromComputed(bare(definition), computed, { frameworkDefault: undefined }, onMisfit),
  );
}

/** Without its lower levels, so that the result comes from the given one. */
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
