import {
  type Change,
  type Item,
  indexPrefix,
  itemPrefix,
  type Section,
  type Store,
} from "../service/dynalite.ts";

/**
 * Atomic, because LevelDB logs a batch as one checksummed record. Reads need not see uncommitted
 * writes: no request has two operations on one item. The write lock replaces item locks.
 */
export function openWriteBatch(store: Store) {
  const changes = new Map<string, Change>();
  const items: Item[] = [];
  const section = (prefix: string, beneath: Section): Section => ({
    lock: (_key, work) => work((done) => done),
    get: (key, done) => beneath.get(key, done),
    put(name, value, done) {
      const key = prefix + name;
      changes.set(key, { type: "put", key, value });
      done(null);
    },
    del(name, done) {
      const key = prefix + name;
      changes.set(key, { type: "del", key });
      done(null);
    },
  });
  const collecting: Store = {
    ...store,
    getItemDb(table) {
      const { put, ...rest } = section(itemPrefix(table), store.getItemDb(table));
      return {
        ...rest,
        put(key, value, done) {
          items.push(value);
          put(key, value, done);
        },
      };
    },
    getIndexDb: (type, table, index) =>
      section(indexPrefix(type, table, index), store.getIndexDb(type, table, index)),
  };
  return {
    store: collecting,
    items: (): readonly Item[] => items,
    commit: (further: readonly Change[] = []) => store.db.batch([...changes.values(), ...further]),
  };
}
