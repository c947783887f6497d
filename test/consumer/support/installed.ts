import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

interface Locked {
  readonly packages: Readonly<
    Record<
      string,
      Readonly<Record<"dependencies" | "optionalDependencies", Record<string, string>>>
    >
  >;
}

/** Size of a project's `node_modules` on its disk, in MB: in all, and without the packages of the AWS clients. */
export function weigh(directory: string): { readonly all: number; readonly besideAws: number } {
  const modules = join(directory, "node_modules");
  const aws = new Set(awsPackages(directory).map((path) => join(directory, path)));
  return { all: megabytes(weight(modules)), besideAws: megabytes(weight(modules, aws)) };
}

/** The versions of a package in a project, one for each copy of it. */
export function copiesOf(directory: string, name: string): string[] {
  return readdirSync(join(directory, "node_modules"), { recursive: true, withFileTypes: true })
    .filter(
      (entry) =>
        entry.name === "package.json" &&
        entry.parentPath.replaceAll("\\", "/").endsWith(`/node_modules/${name}`),
    )
    .map((entry) => JSON.parse(readFileSync(join(entry.parentPath, entry.name), "utf8")).version);
}

/** Folders of the SDK's packages and their dependencies. */
function awsPackages(directory: string): string[] {
  const lock = JSON.parse(
    readFileSync(join(directory, "node_modules/.package-lock.json"), "utf8"),
  ) as Locked; // npm's own form
  const found = new Set<string>();
  const add = (path: string) => {
    if (found.has(path) || lock.packages[path] === undefined) return;
    found.add(path);
    const { dependencies, optionalDependencies } = lock.packages[path];
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies }))
      add(resolved(lock, path, name));
  };
  for (const path of Object.keys(lock.packages))
    if (/node_modules\/@(aws-sdk|smithy)\/[^/]+$/.test(path)) add(path);
  return [...found];
}

/** The folder in which Node finds a package from within another. */
function resolved(lock: Locked, from: string, name: string): string {
  for (
    let folder = from;
    ;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules") - 1))
  ) {
    const path = `${folder}${folder === "" ? "" : "/"}node_modules/${name}`;
    if (folder === "" || lock.packages[path] !== undefined) return path;
  }
}

/** Size of a folder on the disk, in bytes: small files take whole blocks. */
function weight(folder: string, without: ReadonlySet<string> = new Set()): number {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    if (without.has(path)) return entry.isDirectory() ? sum + nested(path, without) : sum;
    if (entry.isDirectory()) return sum + weight(path, without);
    return sum + (entry.isFile() ? onDisk(path) : 0);
  }, onDisk(folder));
}

function onDisk(path: string): number {
  const { size, blocks } = statSync(path);
  return Math.max(size, (blocks || 0) * 512); // Windows tells no blocks
}

/** A package that does not count may hold others that do. */
function nested(path: string, without: ReadonlySet<string>): number {
  const modules = readdirSync(path).includes("node_modules")
    ? join(path, "node_modules")
    : undefined;
  return modules === undefined ? 0 : weight(modules, without);
}

function megabytes(bytes: number): number {
  return Number((bytes / 1_024 / 1_024).toFixed(1));
}
