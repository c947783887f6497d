import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Loads a function from a package that the application has installed, or else from keelson's own
 * location. Hides the package from bundlers, because few applications have it.
 *
 * @throws Error that names the package to install.
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
    >; // safe: a module is an object
    // Safe cast: it is a function, and callers pass the arguments that the package documents.
    if (typeof loaded[member] === "function") return loaded[member] as ImportedFunction;
    throw new Error(
      `the ${name} beside the application has no ${member}; install its latest version`,
    );
  }
  throw new Error(`${name} is not installed beside the application; npm install ${name}`);
}

export type ImportedFunction = (...given: readonly unknown[]) => unknown;

function resolved(name: string, place: string): string | undefined {
  try {
    return createRequire(place).resolve(name);
  } catch {
    return undefined;
  }
}
