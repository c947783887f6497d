// The sample as an archive and a CloudFormation template, without an account.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCompileCache } from "./compile-cache.mjs";
import { bundle, bundleDirectory } from "./package-bundle.mjs";
import { zip } from "./zip.mjs";

const root = join(import.meta.dirname, "..");
/** Where both go. */
export const packageDirectory = join(".keelson", "package");
/** Who runs the functions in Lambda's runtimes for Node. */
const lambdaUser = "993";
/** An upload of some seconds over a slow line; what Lambda takes in one go ends at 50 MB. */
const largestArchive = 600_000;
const server = "examples/files/server.ts";

/** What `npm run package` takes, and `npm run deploy` as well. */
export const packageOptions = {
  stage: { type: "string", default: "dev" },
  shape: { type: "string", default: "one" },
  param: { type: "string", multiple: true, default: [] },
  package: { type: "string", default: packageDirectory },
  "compile-cache": { type: "string" },
  "compile-cache-user": { type: "string", default: lambdaUser },
};

/** What names begin with, in a stage. */
export const prefixOf = (stage) => `keelson-files-${stage}`;
/** Where a stage has its overrides and its key ring in SSM. */
export const parametersOf = (stage) => `/keelson-files/${stage}`;

/**
 * Packages the sample, and holds the template against the server and the bundle.
 *
 * @returns the paths of `code.zip` and `all-<stage>.json`, and the archive's key, which changes with the code alone.
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
 * @returns what it printed.
 * @throws Error with what it complained of.
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
