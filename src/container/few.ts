/**
 * A set of what are hardly ever more than a few, in the order they came. A Set that becomes empty is made anew with the next
 * that comes, for each request of a connection (`http-no-log` in `bench/results.json`).
 */
export class Few<Member> implements Iterable<Member> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    this.#members.push(member);
  }

  /** Takes one out, and tells whether it was there. */
  delete(member: Member): boolean {
    const members = this.#members;
    if (members.length === 1 && members[0] === member) {
      members.pop();
      return true;
    }
    const index = members.indexOf(member);
    if (index !== -1) members.splice(index, 1);
    return index !== -1;
  }

  /** Those that were there when it began: what is done about one may take it out. */
  [Symbol.iterator](): Iterator<Member> {
    return [...this.#members].values();
  }
}
