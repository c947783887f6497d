import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { promisify } from "node:util";
import { consumerEnvironment, shell } from "./environment.ts";

/** The newest version that all of these packages have been published in. */
export async function newestOfAll(names: readonly string[]): Promise<string> {
  const published = await Promise.all(names.map(versionsOf));
  const common = published[0]?.filter((version) =>
    published.every((versions) => versions.includes(version)),
  );
  const newest = common?.at(-1);
  if (newest === undefined)
    throw new Error(`there is no version that all of ${names.join(", ")} have`);
  return newest;
}

/** The released versions of a package, in their order. */
async function versionsOf(name: string): Promise<string[]> {
  const options = { cwd: tmpdir(), env: consumerEnvironment(), shell };
  const { stdout } = await promisify(execFile)(
    "npm",
    ["view", name, "versions", "--json"],
    options,
  );
  return [JSON.parse(stdout) as string | string[]]
    .flat()
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version)); // npm's own form
}
