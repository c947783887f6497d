// `npm run package`: the bundle, the archive and the CloudFormation templates in .keelson/package, without an account.
// What follows `--` goes to osls: `npm run package -- --stage prod --param runtime=nodejs22.x`.
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeCompileCache } from "./compile-cache.mjs";
import { bundle, bundleDirectory } from "./package-bundle.mjs";
import { installInfra, osls, packageDirectory, seconds } from "./package-osls.mjs";

/** Who runs the functions in Lambda's runtimes for Node. */
const lambdaUser = "993";
/** An upload of some seconds over a slow line; what Lambda takes in one go ends at 50 MB. */
const largestArchive = 600_000;

const args = process.argv.slice(2);
/** Those that osls does not know. */
const own = { package: { type: "string" }, "compile-cache": { type: "string" }, "compile-cache-user": { type: "string" } };
const { values, tokens } = parseArgs({
  args,
  strict: false,
  tokens: true,
  options: { ...own, param: { type: "string", multiple: true } },
});
const taken = new Set(
  tokens.flatMap(({ kind, name, index, value, inlineValue }) =>
    kind === "option" && name in own ? (value === undefined || inlineValue ? [index] : [index, index + 1]) : [],
  ),
);
const others = args.filter((_, at) => !taken.has(at));
const directory = values.package ?? packageDirectory;
const say = (line) => console.log(`package: ${line}`);
const began = performance.now();
try {
  installInfra(say);
  await bundle(say);
  const node = values["compile-cache"];
  if (node !== undefined) {
    const isIntel = values.param?.includes("architecture=x86_64") ?? false;
    const architecture = isIntel ? "x64" : "arm64";
    makeCompileCache({ directory: bundleDirectory, node, architecture, user: values["compile-cache-user"] ?? lambdaUser, say });
  }
  await osls("package", ["--package", directory, ...others]);
  const { size } = statSync(join(directory, "keelson-files.zip"));
  say(`the archive: ${Math.round(size / 1000)} KB`);
  if (size > largestArchive) throw new Error(`the archive has ${size} bytes, more than its budget of ${largestArchive}`);
  say(`${directory} after ${seconds(began)}`);
} catch (error) {
  console.error(`package: ${error.message}`);
  process.exitCode = 1;
}
