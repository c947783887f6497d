/** Random numbers that a seed determines (mulberry32). */
export interface Random {
  /** From 0 to 1, without 1. */
  fraction(): number;
  /** A whole number from 0 to `below - 1`. */
  below(below: number): number;
  /** Is `true` with this probability. */
  chance(probability: number): boolean;
  /** One of these; there is at least one. */
  of<Item>(items: readonly [Item, ...Item[]]): Item;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(fraction() * limit);
  return {
    fraction,
    below,
    chance: (probability) => fraction() < probability,
    of: (items) => items[below(items.length)] ?? items[0],
  };
}
