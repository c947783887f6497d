import { createHash } from "node:crypto";
import { basename, dirname, extname, join, resolve } from "node:path";
import type { Metafile } from "esbuild";

export interface ModuleFacts {
  readonly isEntry: boolean;
  readonly importedIds: readonly string[];
  readonly dynamicallyImportedIds: readonly string[];
}

export interface Chunks {
  /**
   * Returns the name of the start file that contains the module, if there is one. Must be called
   * for every used module before `lazy`: SDK packages list more modules than are used, and these
   * calls report the used ones.
   */
  readonly start: (id: string) => string | undefined;
  /**
   * Returns the file of a module that a cold start does not read: `first` if the first request
   * reads the module, `sdk` if it is loaded with the SDK. keelson's own SDK module keeps its file,
   * which `aws/clients/dynamodb.ts` finds by name.
   */
  readonly lazy: (id: string) => "first" | "sdk" | undefined;
}

export function isSdk(id: string): boolean {
  return /(?:^|[\\/])(?:src|dist)[\\/]aws[\\/]clients[\\/]dynamodb-sdk\.[jt]s$/.test(id);
}

function isHttp(id: string) {
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
 *
 * A module with a top-level `await` is in none of these files, nor is any that imports it. If lazy
 * files imported from its file, they would wait for its end while it waits for them.
 */
export function divide(
  ids: Iterable<string>,
  factsOf: (id: string) => ModuleFacts | null,
  isAwaiting: (id: string) => boolean,
): Chunks {
  const all = [...ids];
  const facts = (id: string) => factsOf(id) ?? outside;
  const imports = (id: string) => facts(id).importedIds;
  const entries = all.filter((id) => facts(id).isEntry && !isSdk(id));
  const reached = entries.map((entry) => ({
    atStart: reach([entry], imports),
    ever: reach([entry], (id) => [...imports(id), ...facts(id).dynamicallyImportedIds]),
  }));
  const [http, sdk] = [reach(all.filter(isHttp), imports), reach(all.filter(isSdk), imports)];
  const started = new Set(reached.flatMap(({ atStart }) => [...atStart]));
  const waiting = reach([...started].filter(isAwaiting), (id) =>
    [...started].filter((importer) => imports(importer).includes(id)),
  );
  // Whether every entry that ever reads the module reads it during a cold start.
  const isOnlyStart = (id: string) =>
    reached.every(({ atStart, ever }) => atStart.has(id) === ever.has(id));
  const names = new Map<string, string>();
  const used = new Set<string>();
  const isShared = (id: string) => isOnlyStart(id) && !waiting.has(id);
  return {
    start: (id) => {
      used.add(id);
      if (!started.has(id) || !isShared(id)) return undefined;
      const key = reached.map(({ atStart }) => Number(atStart.has(id))).join("");
      const name = names.get(key) ?? (names.size === 0 ? "start" : `start${names.size + 1}`);
      names.set(key, name);
      return name;
    },
    lazy: (id) => {
      if (started.has(id) && !isShared(id)) return undefined;
      if (http.has(id)) return "first";
      return sdk.has(id) && used.has(id) && !isSdk(id) ? "sdk" : undefined;
    },
  };
}

const outside: ModuleFacts = {
  isEntry: false,
  importedIds: [],
  dynamicallyImportedIds: [],
};

function reach(from: readonly string[], next: (id: string) => readonly string[]) {
  const reached = new Set(from);
  for (const id of reached) for (const imported of next(id)) reached.add(imported);
  return reached;
}

export interface ChunkFile extends Pick<Metafile["outputs"][string], "exports" | "entryPoint"> {
  readonly path: string;
  readonly out: string;
}

/** Files that the second pass merges into one. */
export interface ChunkGroup {
  readonly out: string;
  readonly files: readonly ChunkFile[];
  /**
   * Exports of a file that files outside the group import. An entry point keeps the names of all
   * its exports, because `import()` and Lambda look them up.
   */
  readonly namesOf: (file: ChunkFile) => Names;
}

export type Names = readonly (readonly [name: string, given: string])[];

export type Grouped = ReturnType<typeof groupChunks>;

/** Marks files that are not entries, because esbuild reports lazy modules as entry points too. */
const mark = "keelson~";

export function marked(names: string): string {
  return names.replace(/[^/]*$/, (name) => `${mark}${name}`);
}

/** Groups the files that are read together. `folder` is the working directory of the build. */
export function groupChunks(
  outputs: Metafile["outputs"],
  folder: string,
  textOf: (path: string) => string,
  isAwaiting: (path: string) => boolean,
) {
  const idOf = (path: string) => outputs[path]?.entryPoint ?? path;
  const factsAt = ([path, output]: readonly [string, Metafile["outputs"][string]]): Facts => {
    const { entryPoint, imports, exports } = output;
    const made = imports.filter(({ external, path }) => !external && outputs[path] !== undefined);
    const idsOf = (isLazy: boolean) =>
      made.flatMap(({ kind, path }) =>
        (kind === "dynamic-import") === isLazy ? [idOf(path)] : [],
      );
    const name = basename(path);
    const out = resolve(folder, dirname(path), name.replace(mark, ""));
    const file = { path: resolve(folder, path), out, exports, ...(entryPoint && { entryPoint }) };
    const isEntry = entryPoint !== undefined && !name.startsWith(mark);
    return { file, isEntry, importedIds: idsOf(false), dynamicallyImportedIds: idsOf(true) };
  };
  const facts = new Map(
    Object.entries(outputs).map((output) => [idOf(output[0]), factsAt(output)] as const),
  );
  const entries = [...facts].flatMap(([id, { isEntry }]) => (isEntry ? [id] : []));
  // Safe cast: `idsOf` returns only files in `outputs`, and `facts` has all of these.
  const factsOf = (id: string) => facts.get(id) as Facts;
  const reached = reach(entries, (id) => [
    ...factsOf(id).importedIds,
    ...factsOf(id).dynamicallyImportedIds,
  ]);
  const used = new Map([...facts].filter(([id]) => reached.has(id)));
  const chunks = divide(used.keys(), factsOf, (id) => isAwaiting(factsOf(id).file.path));
  const files = [...used.values()].map(({ file }) => file);
  const named = Map.groupBy(used, ([id]) => chunks.start(id) ?? chunks.lazy(id));
  const groups = [...named].flatMap(([name, members]) => {
    if (name === undefined || members.length < 2) return [];
    const own = members.map(([, { file }]) => file);
    const entry = members.find(([, { isEntry }]) => isEntry)?.[1].file;
    const others = files.filter((file) => !own.includes(file));
    return [grouped(own, entry?.out ?? outOf(name, own), importedBy(others, textOf))];
  });
  return { files, groups };
}

interface Facts extends ModuleFacts {
  readonly file: ChunkFile;
}

function grouped(
  files: readonly ChunkFile[],
  out: string,
  imported: ReadonlySet<string>,
): ChunkGroup {
  const taken = new Set(
    files.flatMap(({ entryPoint, exports }) => (entryPoint === undefined ? [] : exports)),
  );
  let count = 0;
  const short = (): string => {
    const name = `$${(count++).toString(36)}`;
    return taken.has(name) ? short() : name;
  };
  const namesOf = ({ path, entryPoint, exports }: ChunkFile): Names =>
    entryPoint === undefined
      ? exports.filter((name) => imported.has(`${path} ${name}`)).map((name) => [name, short()])
      : exports.map((name) => [name, name]);
  const names = new Map(files.map((file) => [file, namesOf(file)]));
  // Safe cast: callers pass only files of this group.
  return { out, files, namesOf: (file) => names.get(file) as Names };
}

/** Returns imported names as `<path> <name>`. The pattern needs unminified whitespace. */
function importedBy(files: readonly ChunkFile[], textOf: (path: string) => string) {
  return new Set(
    files.flatMap(({ path }) =>
      [...textOf(path).matchAll(/^import \{([^}]*)\} from "(\.[^"]*)";$/gm)].flatMap(
        ([, names = "", from = ""]) =>
          names
            .split(",")
            .map((name) => `${resolve(dirname(path), from)} ${name.trim().split(" as ")[0]}`),
      ),
    ),
  );
}

/** The hash changes with the files' contents, because file names contain hashes. */
function outOf(name: string, files: readonly ChunkFile[]) {
  const names = files.map(({ out }) => basename(out)).sort();
  const hash = createHash("sha256").update(names.join("\n")).digest("hex").slice(0, 8);
  const { out } = files[0] as ChunkFile; // safe cast: a group has files
  return join(dirname(out), `${name}-${hash.toUpperCase()}${extname(out)}`);
}
