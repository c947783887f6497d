// `npm run package`: the bundle, the archive and the CloudFormation templates in .keelson/package, without an account.
// What follows `--` goes to osls: `npm run package -- --stage prod --param runtime=nodejs22.x`.
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bundle } from "./package-bundle.mjs";
import { installInfra, osls, packageDirectory, seconds } from "./package-osls.mjs";

/** An upload of some seconds over a slow line; what Lambda takes in one go ends at 50 MB. */
const largestArchive = 600_000;

const args = process.argv.slice(2);
const { values } = parseArgs({ args, strict: false, options: { package: { type: "string" } } });
const directory = values.package ?? packageDirectory;
const say = (line) => console.log(`package: ${line}`);
const began = performance.now();
try {
  installInfra(say);
  await bundle(say);
  await osls("package", [
    "--package",
    directory,
    ...args.filter((_, at) => args[at] !== "--package" && args[at - 1] !== "--package"),
  ]);
  const { size } = statSync(join(directory, "keelson-files.zip"));
  say(`the archive: ${Math.round(size / 1000)} KB`);
  if (size > largestArchive) throw new Error(`the archive has ${size} bytes, more than its budget of ${largestArchive}`);
  say(`${directory} after ${seconds(began)}`);
} catch (error) {
  console.error(`package: ${error.message}`);
  process.exitCode = 1;
}
