/** A defect that is put back: code in a module of `src/`, and its replacement. */
export interface Defect {
  readonly module: string;
  readonly now: string;
  readonly once: string;
}

const all = {
  /** An event leaves before its commit, so a failed commit leaves an event without its write. */
  "early-event": {
    module: "src/app/ctx/run.ts",
    now: "await this.#write(attempt, effects, counts);",
    once: `await sendEffects(this.#parts.scope, this.#parts, effects);
        await this.#write(attempt, effects, counts);`,
  },
  /** Each request leaves a listener, which keeps the request in memory. */
  "leaked-listener": {
    module: "src/app/run/pipeline.ts",
    now: "scope.asked = request;",
    once: `scope.asked = request;
  runtime.lifecycle.draining.addEventListener("abort", () => void scope.asked);`,
  },
  /** Each tenant reads the cached configuration of the first. */
  "shared-rows": {
    module: "src/parts/config/cache/partition-cache.ts",
    now: "const tenant = tenants.use(ofTenant.partition);",
    once: "const tenant = tenants.use((globalThis.firstTenant ??= ofTenant.partition));",
  },
} as const satisfies Readonly<Record<string, Defect>>;

export type DefectName = keyof typeof all;

// Safe: these are the keys of `all`.
export const defectNames = Object.keys(all) as readonly DefectName[];

export const isDefectName = (name: string): name is DefectName => Object.hasOwn(all, name);

export const defectOf = (name: DefectName): Defect => all[name];
