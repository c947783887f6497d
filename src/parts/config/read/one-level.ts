import type { ConfigKeyDefinition } from "../declare/key.ts";
import {
  cascade,
  cascadeFromComputed,
  type Levels,
  type Misfit,
  type Resolved,
} from "./cascade.ts";

/** What rows, or the app-boot override, supply alone; `undefined` where a lower level would decide. */
export function suppliedBy(
  definition: ConfigKeyDefinition,
  levels: Pick<Levels, "rows" | "override">,
  onMisfit: (misfit: Misfit) => void,
): Resolved | undefined {
  return supplied(cascade(bare(definition), { ...levels, frameworkDefault: undefined }, onMisfit));
}

/** What a computed value supplies alone. */
export function suppliedByComputed(
  definition: ConfigKeyDefinition,
  computed: unknown,
  onMisfit: (misfit: Misfit) => void,
): Resolved | undefined {
  return supplied(
    cascadeFromComputed(bare(definition), computed, { frameworkDefault: undefined }, onMisfit),
  );
}

/** The declaration without its lower levels: what a cascade over one level gives, that level has supplied. */
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
