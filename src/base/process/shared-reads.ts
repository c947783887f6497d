import { patienceMs } from "./in-time.ts";

interface SharedRead<Result> {
  readonly token: object;
  readonly begunMs: number;
  readonly result: Promise<Result>;
}

/** Lets concurrent requests for the same name share one read. */
export class SharedReads<Result> {
  readonly #reads = new Map<string, SharedRead<Result>>();

  /**
   * Joins the read in progress, or starts one.
   *
   * @param read - stores its result only if `isCurrent` returns true: it returns false once the read is
   * forgotten or replaced.
   */
  join(
    name: string,
    nowMs: number,
    read: (isCurrent: () => boolean) => Promise<Result>,
  ): Promise<Result> {
    const known = this.#reads.get(name);
    const ageMs = nowMs - (known?.begunMs ?? 0);
    // An older read stems from before a freeze of the process: its connection may be dead, and the
    // timer that ends it did not run. The age is unknown if the clock was set back.
    if (known !== undefined && ageMs >= 0 && ageMs < patienceMs) return known.result;
    const token = {};
    const isCurrent = () => this.#reads.get(name)?.token === token;
    const result = read(isCurrent).finally(() => {
      if (isCurrent()) this.#reads.delete(name);
    });
    this.#reads.set(name, { token, begunMs: nowMs, result });
    return result;
  }

  /** Later requests start new reads. */
  forget(): void {
    this.#reads.clear();
  }
}
