import { readdir } from "node:fs/promises";
import { basename, resolve } from "node:path";

const overlooked = [".git"];
const shown = 5;

export async function obstacleIn(folder: string): Promise<string | undefined> {
  let entries: string[];
  try {
    entries = await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // safe cast: readdir throws system errors
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

export function isPackageName(name: string): boolean {
  return (
    name.length <= 214 && /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(name)
  );
}

export function packageNameFor(folder: string): string {
  const name = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, "-")
    .replace(/^[._-]+/, "")
    .replace(/-+$/, "");
  return isPackageName(name) ? name : "keelson-app";
}
