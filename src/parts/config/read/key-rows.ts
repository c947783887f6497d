import type { ConfigKeyDefinition, ConfigScope } from "../declare/key.ts";
import type { Resolved } from "./cascade.ts";
import {
  type ConfigRow,
  type ConfigRowReader,
  type RowLevel,
  type RowOwner,
  rowLevels,
} from "./rows.ts";

/** A level, and the row that is known there. */
export interface LevelRow extends RowLevel {
  readonly row: ConfigRow | undefined;
}

/** The rows of one key that may count for one caller, the narrowest first, as they are known at a moment. */
export interface KeyRows {
  readonly levels: readonly LevelRow[];
  /** Whether they are still what a read at `nowMs` would find without waiting. */
  readonly isHeld: (nowMs: number) => boolean;
  /** What a resolver made of exactly these rows, kept for its next read of them. */
  decision: Decision | undefined;
}

/** The outcome of the cascade for the rows it was made from. */
export interface Decision {
  /** The resolver that decided; another one may have other overrides. */
  readonly by: object;
  readonly definition: ConfigKeyDefinition;
  readonly rows: KeyRows;
  readonly outcome: Resolved | "ask-computed";
  /** The outcome's value, as `ctx.config` returns it: one promise for all who read it. */
  readonly value: Promise<unknown>;
  /** When the first of the rows expires, in milliseconds since the epoch. */
  readonly untilMs: number;
}

/** What was decided for one caller, by key identifier. */
export interface HeldDecisions {
  get(id: string): Decision | undefined;
  set(id: string, decision: Decision): void;
}

/** Makes an empty one. Most requests read one key, for which a Map is not made: that takes as long as to find the decision. */
export function createHeldDecisions(): HeldDecisions {
  return new FewDecisions();
}

class FewDecisions implements HeldDecisions {
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

/** Reads the rows of keys for one caller. */
export interface RowView {
  /** Returns the rows at once where they are known, otherwise a promise of them. Never throws but through the promise. */
  rowsOf(key: string, scope: ConfigScope): KeyRows | Promise<KeyRows>;
}

/** Reads rows as they are stored, each time anew and consistently. */
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
