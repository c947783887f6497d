/**
 * Set in insertion order that rarely has more than a few members. A `Set` reallocates each time it
 * has become empty, which happens once per request of a connection (`http-no-log` in
 * `bench/results.json`).
 */
export class SmallSet<Member> implements Iterable<Member> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    this.#members.push(member);
  }

  /** Removes a member and returns whether the set had it. */
  delete(member: Member): boolean {
    const members = this.#members;
    if (members[0] === member) {
      if (members.length === 1) members.pop();
      else members.shift();
      return true;
    }
    const index = members.indexOf(member);
    if (index !== -1) members.splice(index, 1);
    return index !== -1;
  }

  /** Iterates over a copy, so that members may be removed during the iteration. */
  [Symbol.iterator](): Iterator<Member> {
    return [...this.#members].values();
  }
}
