// `npm run deploy -- --stage dev`: packages, creates the key ring if it does not exist, uploads the archive, and deploys the
// template with the AWS CLI. The environment determines the account; AWS_ENDPOINT_URL names an emulator.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  keelson,
  packageOptions,
  packageSample,
  parametersOf,
  prefixOf,
} from "./package-sample.mjs";

const root = join(import.meta.dirname, "..");
const say = (line) => console.log(`deploy: ${line}`);
const began = performance.now();
try {
  const { AWS_REGION, AWS_DEFAULT_REGION } = process.env;
  const region = { type: "string", default: AWS_REGION || AWS_DEFAULT_REGION || "us-east-1" };
  const { values } = parseArgs({
    options: { ...packageOptions, region, bucket: { type: "string" } },
  });
  process.env.AWS_REGION = values.region;
  process.env.AWS_DEFAULT_REGION = values.region; // version 1 of the CLI reads only this one
  await deploy(values);
  say(`deployed after ${((performance.now() - began) / 1000).toFixed(1)} s`);
} catch (error) {
  console.error(`deploy: ${error.message}`);
  process.exitCode = 1;
}

async function deploy({ region, bucket: given, ...values }) {
  const { stage, param } = values;
  const account = run(["sts", "get-caller-identity", "--query", "Account", "--output", "text"]);
  const bucket = given ?? `keelson-files-code-${account}-${region}`; // of all stages
  const { code, template, key } = await packageSample(values, say);
  keyRing(`${parametersOf(stage)}/key-ring`);
  // Anyone could have created a bucket of this name, and would receive the code: then `s3 mb` fails.
  const owner = ["--expected-bucket-owner", account];
  if (aws(["s3api", "head-bucket", "--bucket", bucket, ...owner]).status !== 0)
    run(["s3", "mb", `s3://${bucket}`]);
  run(["s3", "cp", "--no-progress", code, `s3://${bucket}/${key}`]);
  const stack = prefixOf(stage);
  const names = {
    CodeBucket: bucket,
    CodeKey: key,
    NamePrefix: stack,
    ParametersPath: parametersOf(stage),
  };
  const overrides = [
    ...Object.entries({ ...parametersFor(stage), ...names }).map((pair) => pair.join("=")),
    ...param,
  ];
  const place = ["--template-file", template, "--s3-bucket", bucket, "--s3-prefix", stack]; // larger than a call may be
  const allowed = ["--capabilities", "CAPABILITY_IAM", "--no-fail-on-empty-changeset"];
  try {
    run([
      "cloudformation",
      "deploy",
      "--stack-name",
      stack,
      ...place,
      ...allowed,
      "--parameter-overrides",
      ...overrides,
    ]);
  } catch (error) {
    // CloudFormation keeps the new tables of a deployment that it rolls back.
    throw new Error(`${error.message}\nsee "If a deployment fails" in docs/deploy.md`);
  }
  const url = "Stacks[0].Outputs[?OutputKey=='HttpApiUrl'].OutputValue";
  say(
    run([
      "cloudformation",
      "describe-stacks",
      "--stack-name",
      stack,
      "--query",
      url,
      "--output",
      "text",
    ]),
  );
}

/** Parameters of infra/parameters.json for every stage, and for this one. */
function parametersFor(stage) {
  const all = JSON.parse(readFileSync(join(root, "infra", "parameters.json"), "utf8"));
  return { ...all.every, ...all[stage] };
}

/** CloudFormation cannot create a SecureString, and without the ring the functions answer 503. */
function keyRing(parameter) {
  const isThere = () => keelson(["key-ring", "list", "--parameter", parameter]);
  try {
    isThere();
    say(`the key ring ${parameter} exists`);
  } catch (error) {
    if (!/there is no parameter/.test(error.message)) throw error;
    keelson(["key-ring", "create", "--parameter", parameter]);
    say(`made the key ring ${parameter}`);
  }
}

function run(args) {
  const { status, stdout, stderr, error } = aws(args);
  if (status !== 0)
    throw new Error(
      `aws ${args.slice(0, 2).join(" ")} failed: ${error?.message ?? `${stdout}${stderr}`.trim()}`,
    );
  return stdout.trim();
}

function aws(args) {
  return spawnSync("aws", args, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, AWS_PAGER: "" },
  });
}
