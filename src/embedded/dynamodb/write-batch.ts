import {
  type Change,
  type Item,
  indexPrefix,
  itemPrefix,
  type Section,
  type Store,
} from "../service/dynalite.ts";

/** A store that reads through and collects what is written, until all of it is committed at once. */
export interface WriteBatch {
  /** What dynalite's actions write to. */
  readonly store: Store;
  /** The items put so far. */
  items(): readonly Item[];
  /** Writes all that was collected, and `further` changes, in one atomic batch. */
  commit(further?: readonly Change[]): Promise<void>;
}

/**
 * Opens a {@link WriteBatch} on a store.
 *
 * This is what makes every write all or nothing, indexes included, also when the process is
 * killed: LevelDB appends a batch to its log as one checksummed record before it has any effect,
 * and when it opens drops a record that was cut off. So no journal of our own has to be rolled
 * back, and until the commit nothing has happened that would have to be undone.
 *
 * Reads do not see the batch: no write of DynamoDB has two operations on one item. The caller
 * holds the write lock, so locks per item are not needed.
 */
export function openWriteBatch(store: Store): WriteBatch {
  const changes = new Map<string, Change>();
  const items: Item[] = [];
  const section = (prefix: string, beneath: Section): Section => ({
    lock: (_key, work) => work((done) => done),
    get: (key, done) => beneath.get(key, done),
    put(key, value, done) {
      changes.set(prefix + key, { type: "put", key: prefix + key, value });
      done(null);
    },
    del(key, done) {
      changes.set(prefix + key, { type: "del", key: prefix + key });
      done(null);
    },
  });
  return {
    store: {
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
    },
    items: () => items,
    commit: (further = []) => store.db.batch([...changes.values(), ...further]),
  };
}
