// The sample as an archive and a CloudFormation template, without an account.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCompileCache } from "./compile-cache.mjs";
import { bundle, bundleDirectory } from "./package-bundle.mjs";
import { zip } from "./zip.mjs";

const root = join(import.meta.dirname, "..");
/** The folder of both. */
export const packageDirectory = join(".keelson", "package");
/** The user that runs the functions in Lambda's runtimes for Node. */
const lambdaUser = "993";
/** An upload of some seconds over a slow line; Lambda accepts at most 50 MB in one upload. */
const largestArchive = 600_000;
const server = "examples/files/server.ts";

/** Options of `npm run package` and `npm run deploy`. */
export const packageOptions = {
  stage: { type: "string", default: "dev" },
  shape: { type: "string", default: "one" },
  param: { type: "string", multiple: true, default: [] },
  package: { type: "string", default: packageDirectory },
  "compile-cache": { type: "string" },
  "compile-cache-user": { type: "string", default: lambdaUser },
};

/** The prefix of a stage's names. */
export const prefixOf = (stage) => `keelson-files-${stage}`;
/** The path in SSM of a stage's overrides and key ring. */
export const parametersOf = (stage) => `/keelson-files/${stage}`;

/**
 * Packages the sample, and compares the template with the server and the bundle.
 *
 * @returns the paths of `code.zip` and `all-<stage>.json`, and the archive's key, which changes only with the code.
 * @throws Error naming what failed.
 */
export async function packageSample({ stage, shape, param, package: directory, ...cache }, say) {
  await bundle(say);
  const node = cache["compile-cache"];
  if (node !== undefined) {
    const architecture = param.includes("Architecture=x86_64") ? "x64" : "arm64";
    makeCompileCache({
      directory: bundleDirectory,
      node,
      architecture,
      user: cache["compile-cache-user"],
      say,
    });
  }
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const archive = zip(archived());
  say(`the archive: ${Math.round(archive.length / 1000)} KB`);
  if (archive.length > largestArchive) {
    throw new Error(
      `the archive has ${archive.length} bytes, more than its budget of ${largestArchive}`,
    );
  }
  const made = {
    code: join(directory, "code.zip"),
    template: join(directory, `all-${stage}.json`),
  };
  writeFileSync(made.code, archive);
  // The role of each function names the stage's parameters.
  const env = { FILES_PARAMETERS: parametersOf(stage) };
  const own = ["--with", "infra/own.json", "--with", `infra/own-${shape}.json`];
  say(
    keelson(["infra", server, "--stage", stage, "--shape", shape, ...own, "--out", directory], env),
  );
  say(
    keelson(["infra", server, "--check", made.template, "--entry", "infra/dist/lambda.mjs"], env),
  );
  return {
    ...made,
    key: `${prefixOf(stage)}/${createHash("sha256").update(archive).digest("hex").slice(0, 16)}.zip`,
  };
}

/**
 * Runs a command of keelson.
 *
 * @returns its output.
 * @throws Error with its error output.
 */
export function keelson(args, env = {}) {
  const options = { cwd: root, encoding: "utf8", env: { ...process.env, ...env } };
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join("src", "tools", "cli", "main.ts"), ...args],
    options,
  );
  if (status !== 0) throw new Error(stderr.trim());
  return `${stdout}${stderr}`.trim();
}

/** The bundle without its maps. */
function archived() {
  const names = readdirSync(bundleDirectory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".map"))
    .map(({ parentPath, name }) =>
      join(parentPath, name)
        .slice(bundleDirectory.length + 1)
        .replaceAll("\\", "/"),
    );
  return Object.fromEntries(names.sort().map((name) => [name, join(bundleDirectory, name)]));
}
