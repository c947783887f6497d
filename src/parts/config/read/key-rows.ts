import type { ConfigKeyDefinition, ConfigScope } from "../declare/key.ts";
import type { Resolved } from "./cascade.ts";
import {
  type ConfigRow,
  type ConfigRowReader,
  type RowLevel,
  type RowOwner,
  rowLevels,
} from "./rows.ts";

/** Rows of one key that may apply to one caller, the narrowest first, as of one moment. */
export interface KeyRows {
  readonly levels: readonly (RowLevel & { readonly row: ConfigRow | undefined })[];
  /** A read at `nowMs` would return the same rows without waiting. */
  readonly isHeld: (nowMs: number) => boolean;
  decision: Decision | undefined;
}

export interface Decision {
  /** Identity of the resolver that decided: another may have other overrides. */
  readonly by: object;
  readonly definition: ConfigKeyDefinition;
  readonly rows: KeyRows;
  readonly outcome: Resolved | "ask-computed";
  readonly value: Promise<unknown>;
  /** Time at which the first of the rows expires. */
  readonly untilMs: number;
}

export type HeldDecisions = Pick<FewDecisions, "get" | "set">;

/** Most requests read one key, and creating a Map takes as long as finding the decision. */
export class FewDecisions {
  #id: string | undefined = undefined;
  #decision: Decision | undefined = undefined;
  #others: Map<string, Decision> | undefined = undefined;

  get(id: string): Decision | undefined {
    return id === this.#id ? this.#decision : this.#others?.get(id);
  }

  set(id: string, decision: Decision): void {
    this.#id ??= id;
    if (id === this.#id) this.#decision = decision;
    else {
      this.#others ??= new Map();
      this.#others.set(id, decision);
    }
  }
}

export interface RowView {
  /** Cached rows are returned synchronously. Never throws; failures reject the promise. */
  rowsOf(key: string, scope: ConfigScope): KeyRows | Promise<KeyRows>;
}

export function uncachedRows(reader: ConfigRowReader, owner: RowOwner): RowView {
  return {
    rowsOf: async (key, scope) => {
      const levels = rowLevels(scope, owner);
      const rows = await reader.read(levels.map(({ partition }) => ({ partition, key })));
      return {
        levels: levels.map((level, index) => ({ ...level, row: rows[index] })),
        decision: undefined,
        isHeld: () => false,
      };
    },
  };
}
