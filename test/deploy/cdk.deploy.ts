import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { root } from "./package.ts";

const run = promisify(execFile);
const cdk = join(root, "test/deploy/cdk");
const generated = join(root, "infra/generated");
const output = mkdtempSync(join(tmpdir(), "keelson-cdk-"));

afterAll(() => rmSync(output, { recursive: true, force: true }));

test.each(readdirSync(generated))("cdk synth includes %s as it is", async (name) => {
  const file = join(generated, name);
  const quiet = ["--no-notices", "--no-version-reporting", "--no-path-metadata", "--no-asset-metadata", "--quiet"];
  const app = `${process.execPath} ${join(cdk, "app.mjs")} ${file}`;
  await run(process.execPath, [join(cdk, "node_modules/aws-cdk/bin/cdk"), "synth", ...quiet, "--app", app, "--output", output], {
    cwd: cdk,
    env: { ...process.env, CDK_DISABLE_CLI_TELEMETRY: "true" },
  });

  const read = (path: string) => JSON.parse(readFileSync(path, "utf8"));
  expect(read(join(output, "Included.template.json"))).toEqual(read(file));
});
