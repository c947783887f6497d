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
