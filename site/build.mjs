// `npm run docs:build`: makes the site in site/dist: the pages of docs/ by VitePress, and below types/ the public types by
// TypeDoc, from the declarations in dist/. Installs this package where it is not yet, and builds dist/. With --published, as the
// workflow that publishes the site has it, the address of the repository has to be set.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { readAddresses } from "../scripts/address.mjs";
import { installPackage } from "../scripts/install.mjs";

const site = import.meta.dirname;
const root = join(site, "..");
const [option] = process.argv.slice(2);

try {
  if (process.argv.length > 3 || ![undefined, "--published"].includes(option))
    throw new Error("usage: npm run docs:build [-- --published]");
  if (option === "--published" && readAddresses() === undefined)
    throw new Error("package.json names no repository: npm run address -- <address>");
  installPackage("site", (line) => console.log(`docs: ${line}`));
  step("the declarations", [join(root, "scripts", "build.mjs")]);
  rmSync(join(site, "dist"), { recursive: true, force: true });
  step("the pages", [commandOf("vitepress", "bin/vitepress.js"), "build", site]);
  step("the types", [commandOf("typedoc", "bin/typedoc"), ...optionsOfTypes()]);
} catch (error) {
  console.error(`docs: ${error.message}`);
  process.exitCode = 1;
}

function step(name, args) {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`${name} could not be built\n${stdout}${stderr}`);
  console.log(`docs: ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
}

/** The file of a command in this package. */
function commandOf(name, file) {
  const require = createRequire(join(site, "package.json"));
  const paths = require.resolve.paths(name).map((folder) => join(folder, name, file));
  return paths.find((path) => dirname(path).startsWith(site)) ?? paths[0];
}

function optionsOfTypes() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.values(exports).flatMap(({ types }) => types ?? []);
  return [
    ...["--options", join(site, "typedoc.json"), "--tsconfig", join(site, "typedoc.tsconfig.json")],
    ...["--out", join(site, "dist", "types"), "--basePath", join(root, "dist")],
    ...entries.map((path) => join(root, path)),
  ];
}
