import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { accountProblem } from "./account-problem.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-account-"));
  await writeFile(join(folder, "config"), "");
});
afterAll(() => rm(folder, { recursive: true }));
afterEach(() => void vi.unstubAllEnvs());

/** Runs a command in production, on a machine without settings of AWS. */
function run(env: Readonly<Record<string, string>>) {
  for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION"])
    vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_DEFAULT_REGION", undefined);
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  vi.stubEnv("AWS_CONFIG_FILE", join(folder, "config"));
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", join(folder, "none"));
  return ranCommand(["outbox", "list"], { env: { NODE_ENV: "production", ...env } });
}

test("a command without a region says in one line how to set it", async () => {
  expect(await run({})).toEqual({
    code: 1,
    out: [],
    err: "keelson: no region is set; export AWS_REGION=eu-west-1, or another region",
  });
});

test("a command without credentials says in one line how to get some", async () => {
  expect(await run({ AWS_REGION: "eu-west-1" })).toEqual({
    code: 1,
    out: [],
    err: "keelson: no AWS credentials are found; run aws configure or aws sso login",
  });
});

test("a command whose table does not exist says which variables to set, and which command lists the tables", async () => {
  const name = "ResourceNotFoundException";
  const cause = Object.assign(new Error("Requested resource not found"), { name });
  const advice =
    /: a table does not exist; set the deployment's variables, .*keelson doctor <module> lists the tables$/;
  expect(accountProblem(cause)).toMatch(/^Requested resource not found: /);
  expect(accountProblem(cause)).toMatch(advice);
  expect(accountProblem(new Error("no-outbox", { cause }))).toMatch(
    /^no-outbox: a table does not exist/,
  );
  expect(accountProblem(new Error("see keelson doctor app.ts", { cause }))).toBeUndefined();
});

test("the cause of an error counts, and no other error", () => {
  const cause = new Error("Region is missing");
  expect(accountProblem(new Error("the table cannot be read", { cause }))).toMatch(/^no region/);
  expect(accountProblem(new Error("the table cannot be read"))).toBeUndefined();
  expect(accountProblem("Region is missing")).toBeUndefined();
});
