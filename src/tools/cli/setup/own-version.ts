import { readFile } from "node:fs/promises";

/** Returns the version in keelson's `package.json`. */
export async function ownVersion(): Promise<string> {
  // The same number of folders up from `src/` and from `dist/`.
  const file = new URL("../../../../package.json", import.meta.url);
  const { version } = JSON.parse(await readFile(file, "utf8")) as { readonly version: string };
  return version;
}
