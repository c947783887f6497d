import { readdir } from "node:fs/promises";
import { basename, resolve } from "node:path";

/** What a fresh clone has before anybody wrote a file. */
const overlooked = [".git"];
const shown = 5;

/** What is in the way of a project in `folder`; `undefined` where nothing is. */
export async function obstacleIn(folder: string): Promise<string | undefined> {
  let entries: string[];
  try {
    entries = await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // safe: of the file system
    if (code === "ENOENT") return undefined;
    return code === "ENOTDIR"
      ? `${folder} is a file; name a folder`
      : `${folder} cannot be read (${code})`;
  }
  const there = entries.filter((entry) => !overlooked.includes(entry)).sort();
  if (there.length === 0) return undefined;
  const names = there.slice(0, shown).join(", ");
  return `${folder} is not empty: it has ${names}${there.length > shown ? ` and ${there.length - shown} more` : ""}; name a new folder`;
}

/** Whether npm takes it as the name of a package. */
export function isPackageName(name: string): boolean {
  return (
    name.length <= 214 && /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(name)
  );
}

/** A package's name for a project in `folder`. */
export function packageNameFor(folder: string): string {
  const name = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, "-")
    .replace(/^[._-]+/, "")
    .replace(/-+$/, "");
  return isPackageName(name) ? name : "keelson-app";
}
