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

export type ReadWriteLock = ReturnType<typeof createReadWriteLock>;

/** A reader waits for all earlier writers, a writer for all earlier readers and writers. */
export function createReadWriteLock() {
  let lastWrite: Promise<unknown> = Promise.resolve();
  const readers = new Set<Promise<unknown>>();
  return {
    read<Result>(work: () => Promise<Result>): Promise<Result> {
      const run = lastWrite.then(work);
      const settled = run.then(nothing, nothing);
      readers.add(settled);
      void settled.then(() => readers.delete(settled));
      return run;
    },
    write<Result>(work: () => Promise<Result>): Promise<Result> {
      const run = Promise.all([lastWrite, ...readers]).then(work);
      lastWrite = run.then(nothing, nothing);
      return run;
    },
  };
}

function nothing(): void {}
