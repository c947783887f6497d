import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packaged, type Resource, root } from "./package.ts";

const run = promisify(execFile);
const output = mkdtempSync(join(tmpdir(), "keelson-osls-"));
const template = join(output, "cloudformation-template-update-stack.json");

beforeAll(async () => {
  await packaged(); // the bundle that serverless.yml takes
  const osls = join(root, "test/deploy/tools/node_modules/osls/bin/serverless.js");
  await run(process.execPath, [osls, "package", "--package", output], { cwd: root });
});
afterAll(() => rmSync(output, { recursive: true, force: true }));

test("osls package includes the generated tables, queues and bus unchanged, next to its own functions", () => {
  // Safe: osls has written a template.
  const { Resources } = JSON.parse(readFileSync(template, "utf8")) as {
    readonly Resources: Readonly<Record<string, Resource>>;
  };
  const data = JSON.parse(readFileSync(join(root, "infra/generated/data-dev.json"), "utf8"));
  expect(Resources).toMatchObject(data.Resources);
  const functions = Object.keys(Resources).filter(
    (id) => Resources[id]?.Type === "AWS::Lambda::Function",
  );
  expect(functions.sort()).toEqual(
    ["Http", "Queue", "Schedule", "Stream", "Sweep"].map((name) => `${name}LambdaFunction`),
  );
  expect(Resources["QueueLambdaFunction"]?.Properties).toHaveProperty("RecursiveLoop", "Allow");
});

test("the osls package fits the server and the bundle", async () => {
  const args = [
    "infra",
    "examples/files/server.ts",
    "--check",
    template,
    "--entry",
    "infra/dist/lambda.mjs",
  ];
  const { stdout } = await run(process.execPath, ["src/tools/cli/main.ts", ...args], { cwd: root });

  expect(stdout).toContain("fits the server and infra/dist/lambda.mjs");
});
