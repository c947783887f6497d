// Deploys dist/ and the template to AWS: `npm run deploy -- --stage dev`. `npm run deploy` makes both first. It needs the AWS CLI,
// zip and credentials. Each stage has its own stack, and all stages of an account share a bucket for their code.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const template = "infra/generated/all-dev.json"; // its parameters make it fit each stage
const { values } = parseArgs({ options: { stage: { type: "string", default: "dev" } } });
const { name } = JSON.parse(readFileSync("package.json", "utf8"));
const app = name.replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "");
const stack = `${app}-${values.stage}`;
if (!/^[a-z][a-z0-9-]*$/i.test(stack)) {
  end(
    `${stack} cannot name a stack: use letters, digits and hyphens, and start with a letter; change the name in package.json, or --stage`,
  );
}

/** CloudFormation keeps the new tables of a deployment that it rolls back, and the next one cannot create them. */
const afterFailure = `If the next deployment also fails, because ${stack} is in ROLLBACK_COMPLETE or a table already exists: see "If a deployment fails" in node_modules/keelson/docs/deploy.md`;

let region = process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION;
if (!region) {
  const configured = spawn("aws", "configure get region"); // it reads only files
  region = configured.stdout?.trim();
  const problem = configured.error?.message || configured.stderr?.trim();
  const advice = "no region is set: set AWS_REGION, or run `aws configure`";
  if (!region) end(problem ? `${problem}\n${advice}` : advice);
}
Object.assign(process.env, { AWS_REGION: region, AWS_DEFAULT_REGION: region }); // version 1 of the CLI reads only the second
const account = aws("sts get-caller-identity --query Account --output text");
const bucket = `${app}-code-${account}-${region}`;
const excess = bucket.length - 63;
if (excess > 0) {
  end(
    `${bucket} cannot name a bucket: shorten the name in package.json by ${excess} characters or more`,
  );
}
// Anyone could have created a bucket of this name, and would receive the code: then `s3 mb` fails.
const isOurs = succeeds(
  "aws",
  `s3api head-bucket --bucket ${bucket} --expected-bucket-owner ${account}`,
);
if (!isOurs) aws(`s3 mb s3://${bucket}`);

// The same code has the same name, so CloudFormation updates the functions only if it differs.
const hash = createHash("sha256");
for (const file of globSync("dist/*.mjs").sort()) hash.update(file).update(readFileSync(file));
const key = `${hash.digest("hex").slice(0, 16)}.zip`;
run("zip", "-q -r code.zip . -i *.mjs", "dist");
aws(`s3 cp --no-progress dist/code.zip s3://${bucket}/${key}`);

const parameters = `CodeBucket=${bucket} CodeKey=${key} NamePrefix=${stack}`;
console.log(`deploying ${stack}`);
aws(
  `cloudformation deploy --stack-name ${stack} --template-file ${template} --s3-bucket ${bucket} --s3-prefix templates ` +
    `--capabilities CAPABILITY_IAM --no-fail-on-empty-changeset --parameter-overrides ${parameters}`,
);
const url = "Stacks[0].Outputs[?OutputKey=='HttpApiUrl'].OutputValue";
console.log(
  aws(`cloudformation describe-stacks --stack-name ${stack} --query ${url} --output text`),
);

function aws(args) {
  return run("aws", args);
}

/** Returns the output of a command, or ends with its error. */
function run(command, args, cwd = ".") {
  const { status, stdout, stderr, error } = spawn(command, args, cwd);
  if (status === 0) return stdout.trim();
  const advice = args.startsWith("cloudformation deploy") ? `\n${afterFailure}` : "";
  end(`${command} ${args}\n${error?.message ?? `${stdout}${stderr}`}${advice}`);
}

function end(message) {
  console.error(message);
  process.exit(1);
}

function succeeds(command, args) {
  return spawn(command, args).status === 0;
}

function spawn(command, args, cwd) {
  const env = { ...process.env, AWS_PAGER: "" };
  return spawnSync(command, args.split(" "), { cwd, env, encoding: "utf8" });
}
