import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Loads a function of a package that the application has installed: from its directory, or from where keelson is. By a name that
 * bundlers do not follow, since few applications have it.
 *
 * @throws Error saying what to install.
 */
export async function importFrom(
  name: string,
  member: string,
  directory: string,
): Promise<ImportedFunction> {
  for (const place of [join(directory, "package.json"), import.meta.url]) {
    const path = resolved(name, place);
    if (path === undefined) continue;
    const loaded = (await import(/* @vite-ignore */ pathToFileURL(path).href)) as Readonly<
      Record<string, unknown>
    >; // safe: a module
    // Safe: it is looked at, and takes what its package says.
    if (typeof loaded[member] === "function") return loaded[member] as ImportedFunction;
    throw new Error(
      `the ${name} beside the application has no ${member}; install its latest version`,
    );
  }
  throw new Error(`${name} is not installed beside the application; npm install ${name}`);
}

/** A function of a package, whose types are its own. */
export type ImportedFunction = (...given: readonly unknown[]) => unknown;

function resolved(name: string, place: string): string | undefined {
  try {
    return createRequire(place).resolve(name);
  } catch {
    return undefined;
  }
}
