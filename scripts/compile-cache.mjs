// V8's compile cache of a bundle, written by the version of Node that will run the bundle: `npm run package -- --compile-cache <node>`.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Lambda starts Node with this flag, and V8 rejects a cache that was written with other flags. */
const flags = ["--expose-gc"];

/**
 * Writes the folder `compile-cache` into the directory of a bundle. Names in it contain Node's version, the architecture, V8
 * with its flags, and the user. A process that differs in one of these does not find the cache, and compiles the bundle itself.
 *
 * @param node - the program of the target runtime.
 * @param architecture - the value of `process.arch` in the target.
 * @param user - the ID of the user that runs the function.
 * @throws Error if the program does not run here, is for another architecture, or does not write a cache.
 */
export function makeCompileCache({ directory, node, architecture, user, say }) {
  const folder = join(directory, "compile-cache");
  rmSync(folder, { recursive: true, force: true });
  // Set in the packaging shell, these variables would change the files that V8 compiles and keeps.
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
  if (tag === undefined)
    throw new Error(`${node} does not write a compile cache: ${stdout}${stderr}`);
  if (arch !== architecture) {
    throw new Error(
      `${node} is for ${arch}, and the functions for ${architecture}: pass the Node of their runtime`,
    );
  }
  renameSync(join(folder, made), join(folder, `${version}-${arch}-${tag}-${user}`));
  say(`compile cache of Node ${version} for ${arch} and user ${user}`);
}

/** The modules that a cold start reads. They only declare: loading a function does not open a connection. */
const load = `
import { readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
const directory = process.argv[1];
const read = readdirSync(directory).filter((name) => name.endsWith(".mjs") && (!/-[\\w-]{8}\\.mjs$/.test(name) || name.startsWith("first-")));
for (const name of read) await import(pathToFileURL(directory + "/" + name).href);
process.exit();
`;
