import { posix } from "node:path";

/** The most source files of a folder. */
const mostFiles = 25;

/**
 * Finds imports in wrong directions and similar mistakes, each as `{ title, lines }`.
 *
 * @param read - the result of `importsOf`.
 * @param plan - the folders from the top to the bottom, and the exceptions.
 */
export function findings(
  { files, imports, computed, names },
  { folders, computedImports = {}, readers = {}, variables = {} },
) {
  return [
    ...strangers(files, folders),
    ...crowded(files),
    ...circles(imports),
    ...twoWays(imports),
    ...upwards(imports, folders),
    ...hidden(computed, computedImports),
    ...unlistedReaders(imports, readers),
    ...misplacedVariables(names, variables),
  ];
}

/** Files that name an environment variable which another file reads for all, and files that do not read theirs. */
function misplacedVariables(names, variables) {
  return Object.entries(variables).flatMap(([home, owned]) =>
    owned.flatMap((variable) => {
      const files = [...names].filter(([, some]) => some.has(variable)).map(([file]) => file);
      return [
        ...files
          .filter((file) => file !== home)
          .map((file) => ({ title: `${file} reads ${variable}; ask ${home}`, lines: [] })),
        ...(files.includes(home)
          ? []
          : [{ title: `${home} does not read ${variable}; delete it from the plan`, lines: [] }]),
      ];
    }),
  );
}

/** Files with an `import()` of anything but a string, which no other rule sees, and exceptions that are not needed. */
function hidden(computed, allowed) {
  const files = [...new Set(computed)];
  return [
    ...files
      .filter((file) => !Object.hasOwn(allowed, file))
      .map((file) => ({
        title: `${file} computes the name of an import; use a literal`,
        lines: [],
      })),
    ...Object.keys(allowed)
      .filter((file) => !files.includes(file))
      .map((file) => ({
        title: `${file} may compute the name of an import, but does not; delete its exception`,
        lines: [],
      })),
  ];
}

/** Readers of a guarded file that the plan does not list, and listed ones that do not read it. */
function unlistedReaders(imports, readers) {
  return Object.entries(readers).flatMap(([guarded, { names, allowed }]) => {
    const reading = imports.filter(
      (one) =>
        one.to === guarded && one.names.some((name) => [...names, "*", "import()"].includes(name)),
    );
    return [
      ...reading
        .filter(({ from }) => !Object.hasOwn(allowed, from))
        .map((one) => ({
          title: `${one.from} reads ${guarded}, which is for ${Object.keys(allowed).join(", ")}`,
          lines: [arrow(one)],
        })),
      ...Object.keys(allowed)
        .filter((file) => !reading.some(({ from }) => from === file))
        .map((file) => ({
          title: `${file} may read ${guarded}, and does not; delete its exception`,
          lines: [],
        })),
    ];
  });
}

/** Folders that the plan does not have, and folders of the plan that do not exist. */
function strangers(files, plan) {
  const folders = new Set(files.map(folderOf));
  const missing = [...folders].filter((folder) => !plan.includes(folder)).sort();
  const gone = plan.filter((folder) => !folders.has(folder));
  const twice = plan.filter((folder, at) => plan.indexOf(folder) < at);
  return [
    ...missing.map((folder) => ({ title: `${folder} is not in the plan`, lines: [] })),
    ...gone.map((folder) => ({ title: `${folder} is in the plan, and has no files`, lines: [] })),
    ...twice.map((folder) => ({ title: `${folder} is in the plan twice`, lines: [] })),
  ];
}

/** Folders with more source files than a reader can look over. */
function crowded(files) {
  return [...Map.groupBy(files, folderOf)]
    .filter(([, some]) => some.length > mostFiles)
    .map(([folder, some]) => ({
      title: `${folder} has ${some.length} files, more than ${mostFiles}`,
      lines: [],
    }));
}

/** Circles of files: for each import that is part of any, the shortest. */
function circles(imports) {
  const next = Map.groupBy(imports, ({ from }) => from);
  const found = new Map();
  for (const one of imports) {
    const back = one.from === one.to ? [] : shortest(next, one.to, one.from);
    if (back === undefined) continue;
    const circle = fromFirst([one, ...back]);
    found.set(circle.map(({ from }) => from).join(" "), circle);
  }
  return [...found.values()].map((circle) => ({
    title: `circle of ${counted(circle.length, "file")}`,
    lines: circle.map(arrow),
  }));
}

/** The shortest way between two files, as imports. */
function shortest(next, from, to) {
  const ways = new Map([[from, []]]);
  for (const [file, way] of ways) {
    for (const one of next.get(file) ?? []) {
      if (one.to === to) return [...way, one];
      if (!ways.has(one.to)) ways.set(one.to, [...way, one]);
    }
  }
}

/** The same circle, starting at the file whose name comes first, so that the result does not depend on the search. */
function fromFirst(circle) {
  const names = circle.map(({ from }) => from);
  const first = names.indexOf(names.toSorted()[0]);
  return [...circle.slice(first), ...circle.slice(0, first)];
}

/** Folders that import each other. */
function twoWays(imports) {
  const between = betweenFolders(imports);
  return [...between.keys()].flatMap((key) => {
    const [one, other] = key.split(" ");
    const back = between.get(`${other} ${one}`);
    if (back === undefined || one > other) return [];
    const there = between.get(key);
    const count = `${there.length} there, ${back.length} back`;
    return [{ title: `${one} <-> ${other}: ${count}`, lines: [...there, ...back].map(arrow) }];
  });
}

/** Imports against the plan. */
function upwards(imports, plan) {
  return [...betweenFolders(imports)].flatMap(([key, some]) => {
    const [one, other] = key.split(" ");
    const [from, to] = [plan.indexOf(one), plan.indexOf(other)];
    if (from === -1 || to === -1 || from < to) return [];
    return [{ title: `${one} -> ${other} goes up`, lines: some.map(arrow) }];
  });
}

/** The imports from one folder to another, by `from to`. */
function betweenFolders(imports) {
  const crossing = imports.filter(({ from, to }) => folderOf(from) !== folderOf(to));
  const grouped = Map.groupBy(crossing, ({ from, to }) => `${folderOf(from)} ${folderOf(to)}`);
  return new Map([...grouped].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function folderOf(file) {
  return posix.dirname(file);
}

function arrow({ from, to, names }) {
  return `${from} -> ${to}: ${names.join(", ")}`;
}

function counted(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
