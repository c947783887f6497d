export interface ModuleFacts {
  readonly isEntry: boolean;
  readonly importedIds: readonly string[];
  readonly dynamicallyImportedIds: readonly string[];
}

export interface Chunks {
  /**
   * Returns the name of the start file that contains the module, if there is one. Must be called
   * for every used module before `lazy`: SDK packages list more modules than are used, and these
   * calls tell which are.
   */
  readonly start: (id: string) => string | undefined;
  /**
   * Returns the file of a module that a cold start does not read: `first` if the first request
   * reads the module, `sdk` if it is loaded with the SDK. keelson's own SDK module keeps its file,
   * which `aws/clients/dynamodb.ts` finds by name.
   */
  readonly lazy: (id: string) => "first" | "sdk" | undefined;
}

/** Whether this module contains keelson's imports from the DynamoDB SDK. */
export function isSdk(id: string): boolean {
  return /(?:^|[\\/])(?:src|dist)[\\/]aws[\\/]clients[\\/]dynamodb-sdk\.[jt]s$/.test(id);
}

function isHttp(id: string): boolean {
  return /(?:^|[\\/])(?:src|dist)[\\/]hosts[\\/]lambda-http[\\/]http-events\.[jt]s$/.test(id);
}

/**
 * Divides modules into files. Each file costs a millisecond of a cold start, so modules that are
 * read together share one file: the modules that an entry imports, and those that the first request
 * loads with `import()`.
 *
 * | module reached by `import` statements from | reached by `import()` from | file |
 * |---|---|---|
 * | some entries | no entries or the same entries | one file for exactly these entries |
 * | some entries | other entries | the bundler's choice: a shared file would run others' code |
 * | the first request | any | one file |
 * | the SDK as keelson uses it | any | a separate file, which a configuration query does not need |
 */
export function divide(ids: Iterable<string>, factsOf: (id: string) => ModuleFacts | null): Chunks {
  const all = [...ids];
  const facts = (id: string) => factsOf(id) ?? outside;
  const imports = (id: string) => facts(id).importedIds;
  const entries = all.filter((id) => facts(id).isEntry && !isSdk(id));
  const reached = entries.map((entry) => ({
    atStart: reach([entry], imports),
    ever: reach([entry], (id) => [...imports(id), ...facts(id).dynamicallyImportedIds]),
  }));
  const [http, sdk] = [reach(all.filter(isHttp), imports), reach(all.filter(isSdk), imports)];
  const isStart = (id: string) => reached.some(({ atStart }) => atStart.has(id));
  // Whether every entry that ever reads the module reads it during a cold start.
  const isOnlyStart = (id: string) =>
    reached.every(({ atStart, ever }) => atStart.has(id) === ever.has(id));
  const names = new Map<string, string>();
  const used = new Set<string>();
  return {
    start: (id) => {
      used.add(id);
      if (!isStart(id) || !isOnlyStart(id)) return undefined;
      const key = reached.map(({ atStart }) => Number(atStart.has(id))).join("");
      const name = names.get(key) ?? (names.size === 0 ? "start" : `start${names.size + 1}`);
      names.set(key, name);
      return name;
    },
    lazy: (id) => {
      if (isStart(id) && !isOnlyStart(id)) return undefined;
      if (http.has(id)) return "first";
      return sdk.has(id) && used.has(id) && !isSdk(id) ? "sdk" : undefined;
    },
  };
}

const outside: ModuleFacts = { isEntry: false, importedIds: [], dynamicallyImportedIds: [] };

/** The result includes `from`. */
export function reach(
  from: readonly string[],
  next: (id: string) => readonly string[],
): ReadonlySet<string> {
  const reached = new Set(from);
  for (const id of reached) for (const imported of next(id)) reached.add(imported);
  return reached;
}
