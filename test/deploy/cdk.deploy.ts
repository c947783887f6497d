import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { root } from "./package.ts";

const run = promisify(execFile);
const tools = join(root, "test/deploy/tools");
const output = mkdtempSync(join(tmpdir(), "keelson-cdk-"));
afterAll(() => rmSync(output, { recursive: true, force: true }));

test.each([
  ["data", "one"],
  ["functions", "one"],
  ["all", "one"],
  ["all", "each"],
])("cdk synth includes the template of %s unchanged, in shape %s", async (part, shape) => {
  const own =
    part === "all" ? ["--with", "infra/own.json", "--with", `infra/own-${shape}.json`] : [];
  const infra = [
    "infra",
    "examples/files/server.ts",
    "--part",
    part,
    "--shape",
    shape,
    ...own,
    "--out",
    output,
  ];
  await run(process.execPath, [join(root, "src/tools/cli/main.ts"), ...infra], { cwd: root });
  const file = join(output, `${part}-dev.json`);
  const quiet = [
    "--no-notices",
    "--no-version-reporting",
    "--no-path-metadata",
    "--no-asset-metadata",
    "--quiet",
  ];
  const app = `${process.execPath} ${join(tools, "cdk-app.mjs")} ${file}`;
  const synth = ["synth", ...quiet, "--app", app, "--output", join(output, "cdk")];
  await run(process.execPath, [join(tools, "node_modules/aws-cdk/bin/cdk"), ...synth], {
    cwd: tools,
    env: { ...process.env, CDK_DISABLE_CLI_TELEMETRY: "true" },
  });

  // The CDK writes a list where one name would do.
  const read = (path: string) =>
    JSON.parse(readFileSync(path, "utf8"), (name, value) =>
      name === "DependsOn" ? [value].flat() : value,
    );
  expect(read(join(output, "cdk/Included.template.json"))).toEqual(read(file));
});
