import { forgetOldest } from "./forget-oldest.ts";

/** Keeps at most `limit` values, each for `maxAgeMs`. */
export class Recent<Value> {
  readonly #entries = new Map<string, { readonly value: Value; readonly atMs: number }>();
  readonly #limit: number;
  readonly #maxAgeMs: number;

  constructor(limit: number, maxAgeMs: number) {
    this.#limit = limit;
    this.#maxAgeMs = maxAgeMs;
  }

  get(name: string, nowMs: number): Value | undefined {
    const entry = this.#entries.get(name);
    const ageMs = nowMs - (entry?.atMs ?? 0);
    // A clock that was set back must not prolong a value.
    return ageMs >= 0 && ageMs < this.#maxAgeMs ? entry?.value : undefined;
  }

  set(name: string, value: Value, atMs: number): void {
    this.#entries.delete(name);
    this.#entries.set(name, { value, atMs });
    forgetOldest(this.#entries, this.#limit);
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }

  deleteWhere(test: (value: Value) => boolean): void {
    for (const [name, { value }] of this.#entries) if (test(value)) this.#entries.delete(name);
  }
}
