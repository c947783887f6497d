import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { root } from "./dockerfile.ts";

// The starter's scripts/deploy.mjs, with programs in place of `aws` and `zip`. `npm run test:consumer` runs it with the AWS CLI.

const directory = mkdtempSync(join(tmpdir(), "keelson-starter-deploy-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** Prints its region and arguments to `calls`, and answers as the CLI does. A bucket of $OWNER exists. */
const aws = `#!/bin/sh
echo "$AWS_REGION $AWS_DEFAULT_REGION $*" >>"$CALLS"
case "$*" in
  "configure get region") [ -n "$CONFIGURED" ] && echo "$CONFIGURED" ;;
  "sts get-caller-identity "*) echo 111122223333 ;;
  "s3api head-bucket "*" --expected-bucket-owner 111122223333") [ "$OWNER" = 111122223333 ] ;;
  "s3api head-bucket "*) [ -n "$OWNER" ] ;;
  "s3 mb "*) [ -z "$OWNER" ] || { echo "BucketAlreadyExists" >&2; exit 1; } ;;
  "cloudformation deploy "*) [ -z "$BROKEN" ] || { echo "it is in ROLLBACK_COMPLETE state" >&2; exit 1; } ;;
  "cloudformation describe-stacks "*) echo https://api.example ;;
esac
`;

/** Deploys a project of that name, and returns the output and the calls of the script. */
function deploy(name: string, env: Readonly<Record<string, string>> = {}, args: string[] = []) {
  const project = mkdtempSync(join(directory, "project-"));
  const programs = join(project, "programs");
  for (const folder of ["programs", "scripts", "dist"]) mkdirSync(join(project, folder));
  writeFileSync(join(programs, "aws"), aws, { mode: 0o755 });
  writeFileSync(join(programs, "zip"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(project, "package.json"), JSON.stringify({ name }));
  const script = "scripts/deploy.mjs";
  copyFileSync(join(root, "examples/starter", script), join(project, script));
  const calls = join(project, "calls");
  writeFileSync(calls, "");
  const own = {
    CALLS: calls,
    OWNER: "",
    CONFIGURED: "",
    BROKEN: "",
    AWS_REGION: "",
    AWS_DEFAULT_REGION: "",
  };
  const path = [programs, process.env["PATH"]].join(delimiter);
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    cwd: project,
    encoding: "utf8",
    env: { ...process.env, ...own, ...env, PATH: path },
  });
  return { status, stdout, stderr, calls: readFileSync(calls, "utf8").trim().split("\n") };
}

const region = "eu-west-1";
const deployed = "deploying my-app-dev\nhttps://api.example\n";

describe.skipIf(process.platform === "win32")("the starter's deployment", () => {
  test.each([
    [
      "AWS_REGION",
      { AWS_REGION: region, AWS_DEFAULT_REGION: "us-east-2", CONFIGURED: "sa-east-1" },
    ],
    ["AWS_DEFAULT_REGION", { AWS_DEFAULT_REGION: region, CONFIGURED: "sa-east-1" }],
    ["the CLI's files", { CONFIGURED: region }],
  ])("all of it is in the region of %s, under both names", (_, env) => {
    const { status, stdout, calls } = deploy("my-app", env);

    expect([status, stdout]).toEqual([0, deployed]);
    const made = calls.filter((call) => !call.endsWith("configure get region"));
    expect(made.map((call) => call.split(" ").slice(0, 2))).toEqual(
      made.map(() => [region, region]),
    );
    expect(made).toContainEqual(
      `${region} ${region} s3 mb s3://my-app-code-111122223333-${region}`,
    );
  });

  test("a bucket of the account is used, and another account's never receives the code", () => {
    const own = deploy("my-app", { AWS_REGION: region, OWNER: "111122223333" });
    expect([own.status, own.calls.filter((call) => call.includes("s3 mb"))]).toEqual([0, []]);

    const foreign = deploy("my-app", { AWS_REGION: region, OWNER: "999999999999" });
    expect(foreign).toMatchObject({ status: 1, stdout: "" });
    expect(foreign.stderr).toContain("BucketAlreadyExists");
    expect(foreign.calls.filter((call) => /s3 cp|cloudformation/.test(call))).toEqual([]);
  });

  test("a deployment that CloudFormation rolls back ends with the page that tells how to go on", () => {
    const failed = deploy("my-app", { AWS_REGION: region, BROKEN: "yes" });

    expect(failed).toMatchObject({ status: 1, stdout: "deploying my-app-dev\n" });
    const lines = failed.stderr.trim().split("\n");
    expect(lines).toContain("it is in ROLLBACK_COMPLETE state");
    expect(lines.at(-1)).toContain(
      '"If a deployment fails" in node_modules/keelson/docs/deploy.md',
    );
  });

  test.each([
    ["without a region", "my-app", {}, [], "no region is set: set AWS_REGION"],
    ["named with a digit first", "3d-store", {}, [], "3d-store-dev cannot name a stack"],
    ["in a stage with a dot", "my-app", {}, ["--stage", "v1.2"], "my-app-v1.2 cannot name a stack"],
    [
      "with a long name",
      `@acme/${"a".repeat(37)}`,
      { AWS_REGION: region },
      [],
      "shorten the name in package.json by 7 characters or more",
    ],
  ])("a project %s is refused in one line", (_, name, env, args, line) => {
    const { status, stdout, stderr, calls } = deploy(name, env, args);

    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain(line);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(calls.filter((call) => /s3|cloudformation/.test(call))).toEqual([]);
  });
});
