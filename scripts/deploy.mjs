// `npm run deploy -- --stage dev`: packages, makes the key ring where there is none, and deploys what was packaged. What
// follows `--` goes to osls. The account is the environment's; AWS_ENDPOINT_URL names an emulator.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bundle } from "./package-bundle.mjs";
import { installInfra, osls, packageDirectory, seconds } from "./package-osls.mjs";

const root = join(import.meta.dirname, "..");
const say = (line) => console.log(`deploy: ${line}`);
const began = performance.now();
try {
  const { values, tokens } = parseArgs({
    args: process.argv.slice(2),
    strict: false,
    tokens: true,
    options: {
      stage: { type: "string", short: "s", default: "dev" },
      region: { type: "string", short: "r", default: process.env.AWS_REGION || "us-east-1" },
      param: { type: "string", multiple: true, default: [] },
    },
  });
  const { stage, region, param } = values;
  if (!/^[a-z][a-z0-9-]{0,19}$/.test(stage)) throw new Error(`--stage ${stage} is no name of a stage; say --stage dev`);
  const common = ["--stage", stage, "--region", region, ...param.flatMap((text) => ["--param", text])];
  const others = tokens.filter(({ kind, name }) => kind === "option" && !(name in { stage, region, param }));
  installInfra(say);
  await bundle(say);
  await osls("package", ["--package", packageDirectory, ...common]);
  keyRing(`/keelson-files/${stage}/key-ring`, { ...process.env, AWS_REGION: region });
  await osls("deploy", [
    "--package",
    packageDirectory,
    ...common,
    ...others.map(({ rawName, value }) => (value === undefined ? rawName : `${rawName}=${value}`)),
  ]);
  say(`deployed after ${seconds(began)}`);
} catch (error) {
  console.error(`deploy: ${error.message}`);
  process.exitCode = 1;
}

/** CloudFormation makes no SecureString, and without the ring the functions answer 503. */
function keyRing(parameter, env) {
  const keelson = (action) =>
    spawnSync(process.execPath, [join("src", "cli", "main.ts"), "key-ring", action, "--parameter", parameter], {
      cwd: root,
      encoding: "utf8",
      env,
    });
  const listed = keelson("list");
  if (listed.status === 0) return say(`the key ring ${parameter} is there`);
  if (!/there is no parameter/.test(listed.stderr)) {
    throw new Error(`the key ring ${parameter} cannot be read: ${listed.stderr.trim()}`);
  }
  const created = keelson("create");
  if (created.status !== 0) throw new Error(`the key ring ${parameter} cannot be made: ${created.stderr.trim()}`);
  say(`made the key ring ${parameter}`);
}
