// V8's compile cache of a bundle, made by the Node that is going to run it: `npm run package -- --compile-cache <node>`.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Lambda starts Node with it, and V8 takes no cache that was made with other flags. */
const flags = ["--expose-gc"];

/**
 * Writes the folder `compile-cache` into the directory of a bundle. The name of what is in it holds Node's version, the
 * architecture, V8 with its flags, and the user: any other process finds nothing there, and compiles as it would without.
 *
 * @param node - the program of the target runtime.
 * @param architecture - of the target, as `process.arch` says it.
 * @param user - the ID of the user that runs the function.
 * @throws Error where the program does not run here, is for another architecture, or makes nothing.
 */
export function makeCompileCache({ directory, node, architecture, user, say }) {
  const folder = join(directory, "compile-cache");
  rmSync(folder, { recursive: true, force: true });
  // They change what V8 compiles and keeps, for whoever packages.
  const {
    NODE_OPTIONS: _options,
    NODE_V8_COVERAGE: _coverage,
    NODE_DISABLE_COMPILE_CACHE: _off,
    ...env
  } = process.env;
  const { status, stdout, stderr, error } = spawnSync(
    node,
    [...flags, "--input-type=module", "--eval", load, directory],
    {
      encoding: "utf8",
      env: {
        ...env,
        NODE_ENV: "production",
        NODE_COMPILE_CACHE: folder,
        NODE_COMPILE_CACHE_PORTABLE: "1",
      },
    },
  );
  if (status !== 0)
    throw new Error(
      `${node} does not load the bundle here: ${error?.message ?? stderr.slice(-2000)}`,
    );
  const [made] = existsSync(folder) ? readdirSync(folder) : [];
  const [, version, arch, tag] = /^(v[\d.]+)-(\w+)-(\w+)-\d+$/.exec(made ?? "") ?? [];
  if (tag === undefined) throw new Error(`${node} makes no compile cache: ${stdout}${stderr}`);
  if (arch !== architecture) {
    throw new Error(
      `${node} is for ${arch}, and the functions for ${architecture}: pass the Node of their runtime`,
    );
  }
  renameSync(join(folder, made), join(folder, `${version}-${arch}-${tag}-${user}`));
  say(`compile cache of Node ${version} for ${arch} and user ${user}`);
}

/** What a cold start reads. It only declares: a function that is loaded opens nothing. */
const load = `
import { readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
const directory = process.argv[1];
const read = readdirSync(directory).filter((name) => name.endsWith(".mjs") && (!/-[\\w-]{8}\\.mjs$/.test(name) || name.startsWith("first-")));
for (const name of read) await import(pathToFileURL(directory + "/" + name).href);
process.exit();
`;
