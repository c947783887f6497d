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
    if (this.#entries.size > this.#limit) this.#forgetOldest();
  }

  /** Forgets a tenth together, because iterating a `Map` passes over every entry deleted before. */
  #forgetOldest(): void {
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= Math.ceil(this.#limit * 0.9)) return;
      this.#entries.delete(oldest);
    }
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }

  deleteWhere(test: (value: Value) => boolean): void {
    for (const [name, { value }] of this.#entries) if (test(value)) this.#entries.delete(name);
  }
}
