import { createHash } from "node:crypto";
import { basename, dirname, extname, join, resolve } from "node:path";
import type { Metafile } from "esbuild";
import { divide, type ModuleFacts, reach } from "./chunks.ts";

/** Output file of esbuild's first pass. */
export interface ChunkFile {
  readonly path: string;
  readonly out: string;
  readonly exports: readonly string[];
  /** Module that the file was created for, if any. */
  readonly entryPoint: string | undefined;
}

/** Files that are merged into one. */
export interface ChunkGroup {
  readonly out: string;
  readonly files: readonly ChunkFile[];
  /**
   * Exports of a file that other files import, with their names in the merged file. Exports of an
   * entry point keep their names, because `import()` and Lambda look them up by name.
   */
  readonly namesOf: (file: ChunkFile) => Names;
}

/** Pairs of an original name and its name in the merged file. */
export type Names = readonly (readonly [name: string, given: string])[];

export interface Grouped {
  /** Files that the entries reach. */
  readonly files: readonly ChunkFile[];
  readonly groups: readonly ChunkGroup[];
}

/**
 * Prefix of the names of non-entry files in the first pass. esbuild reports lazy modules as entries
 * too, so the prefix distinguishes them.
 */
const mark = "keelson~";

/** Adds the prefix to a name pattern. */
export function marked(names: string): string {
  return names.replace(/[^/]*$/, (name) => `${mark}${name}`);
}

/**
 * Finds the files that are read together. `folder` is the working directory of the build. `textOf`
 * returns the text of a file.
 */
export function groupChunks(
  outputs: Metafile["outputs"],
  folder: string,
  textOf: (path: string) => string,
): Grouped {
  const idOf = (path: string) => outputs[path]?.entryPoint ?? path;
  const facts = new Map(
    Object.entries(outputs).map(([path, { entryPoint, imports, exports }]) => {
      const made = imports.filter(
        (found) => found.external !== true && outputs[found.path] !== undefined,
      );
      const idsOf = (isLazy: boolean) =>
        made
          .filter(({ kind }) => (kind === "dynamic-import") === isLazy)
          .map((found) => idOf(found.path));
      const out = resolve(folder, dirname(path), basename(path).replace(mark, ""));
      const file: ChunkFile = { path: resolve(folder, path), out, exports, entryPoint };
      const isEntry = entryPoint !== undefined && !basename(path).startsWith(mark);
      const facts: Facts = {
        file,
        isEntry,
        importedIds: idsOf(false),
        dynamicallyImportedIds: idsOf(true),
      };
      return [idOf(path), facts];
    }),
  );
  const entries = [...facts].flatMap(([id, { isEntry }]) => (isEntry ? [id] : []));
  // Safe: files only import each other, because `idsOf` filters out everything else.
  const factsOf = (id: string) => facts.get(id) as Facts;
  const reached = reach(entries, (id) => [
    ...factsOf(id).importedIds,
    ...factsOf(id).dynamicallyImportedIds,
  ]);
  const used = new Map([...facts].filter(([id]) => reached.has(id)));
  const chunks = divide(used.keys(), factsOf);
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
  const names = new Map(
    files.map((file) => {
      if (file.entryPoint !== undefined)
        return [file, file.exports.map((name) => [name, name] as const)];
      return [
        file,
        file.exports
          .filter((name) => imported.has(`${file.path} ${name}`))
          .map((name) => [name, short()] as const),
      ];
    }),
  );
  // Safe: callers pass only files of this group.
  return { out, files, namesOf: (file) => names.get(file) as Names };
}

/**
 * Collects the names that files import, each prefixed with the path of the imported file. The
 * pattern matches esbuild's output without whitespace minification.
 */
function importedBy(
  files: readonly ChunkFile[],
  textOf: (path: string) => string,
): ReadonlySet<string> {
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

/**
 * Returns a file name with a hash that changes with the contents of the files: it is computed from
 * their names, which contain hashes.
 */
function outOf(name: string, files: readonly ChunkFile[]): string {
  const names = files.map(({ out }) => basename(out)).sort();
  const hash = createHash("sha256")
    .update(names.join("\n"))
    .digest("hex")
    .slice(0, 8)
    .toUpperCase();
  const { out } = files[0] as ChunkFile; // safe: a group has files
  return join(dirname(out), `${name}-${hash}${extname(out)}`);
}
