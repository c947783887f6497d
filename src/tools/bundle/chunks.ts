/** What a bundler knows of a module, once it has read them all. */
export interface ModuleFacts {
  readonly isEntry: boolean;
  /** Imported by a statement. */
  readonly importedIds: readonly string[];
  /** Imported by `import()`. */
  readonly dynamicallyImportedIds: readonly string[];
}

/** Which file a module goes into. */
export interface Chunks {
  /**
   * The name of the file for a module that an entry uses, or that keelson uses of the SDK. All of these are asked for first:
   * packages of the SDK list more than is used, and so it is known what is. `undefined`: it is not one for a start.
   */
  readonly start: (id: string) => string | undefined;
  /**
   * The name of the file for a module that no start reads: `first` if the first request does, `sdk` if it comes with the SDK.
   * The SDK's module of keelson's own keeps a file of its name, by which `aws/sdk-now.ts` finds it.
   */
  readonly lazy: (id: string) => "first" | "sdk" | undefined;
}

/** The module with what keelson uses of the SDK for DynamoDB. */
export function isSdk(id: string): boolean {
  return /(?:^|[\\/])(?:src|dist)[\\/]aws[\\/]clients[\\/]dynamodb-sdk\.[jt]s$/.test(id);
}

function isHttp(id: string): boolean {
  return /(?:^|[\\/])(?:src|dist)[\\/]hosts[\\/]lambda-http[\\/]http-events\.[jt]s$/.test(id);
}

/**
 * Divides modules into files. A file costs a millisecond of a cold start, so what is read together is one file: what an entry
 * imports, and what the first request asks for by `import()`.
 *
 * | a module that statements import from | and `import()` from | goes into |
 * |---|---|---|
 * | some entries | none or the same entries | a file for just these entries |
 * | some entries | other entries | what the bundler chooses: a file of entries would run their code in others |
 * | the first request | any | one file |
 * | the SDK as keelson uses it | any | another, which a query that reads configuration does without |
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
  // Of the entries that ever read a module, all read it at their start.
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

/** What is known of a module that is not bundled. */
const outside: ModuleFacts = { isEntry: false, importedIds: [], dynamicallyImportedIds: [] };

/** What one gets to from some, with these. */
export function reach(
  from: readonly string[],
  next: (id: string) => readonly string[],
): ReadonlySet<string> {
  const reached = new Set(from);
  for (const id of reached) for (const imported of next(id)) reached.add(imported);
  return reached;
}
