import {
  type Change,
  type Item,
  indexPrefix,
  itemPrefix,
  type Section,
  type Store,
} from "../service/dynalite.ts";

/** Store that reads through and collects writes until they are committed atomically. */
export interface WriteBatch {
  /** Store that dynalite's actions write to. */
  readonly store: Store;
  items(): readonly Item[];
  /** Writes all collected changes and `further` ones in one atomic batch. */
  commit(further?: readonly Change[]): Promise<void>;
}

/**
 * Opens a {@link WriteBatch} on a store.
 *
 * The batch makes every write atomic, including its index entries, even if the process is killed.
 * LevelDB appends a batch to its log as one checksummed record before it takes effect, and drops an
 * incomplete record when it opens. keelson therefore needs neither a journal nor a rollback.
 *
 * Reads do not see the batch, because no DynamoDB write has two operations on one item. The caller
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
