import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { root } from "./package.ts";

const run = promisify(execFile);
const tools = join(root, "test/deploy/tools");
const output = mkdtempSync(join(tmpdir(), "keelson-cdk-"));
afterAll(() => rmSync(output, { recursive: true, force: true }));

const infra = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  run(process.execPath, [join(root, "src/tools/cli/main.ts"), "infra", ...args], {
    cwd: root,
    env: { ...process.env, ...env },
  });
const synth = (app: string, env: Readonly<Record<string, string>> = {}) => {
  const quiet = ["--no-notices", "--no-version-reporting", "--no-path-metadata"];
  const args = [...quiet, "--no-asset-metadata", "--quiet", "--output", join(output, "cdk")];
  const cdk = join(tools, "node_modules/aws-cdk/bin/cdk");
  return run(process.execPath, [cdk, "synth", ...args, "--app", `${process.execPath} ${app}`], {
    cwd: tools,
    env: { ...process.env, ...env, CDK_DISABLE_CLI_TELEMETRY: "true" },
  });
};
// The CDK writes a list even for one name.
const read = (path: string) =>
  JSON.parse(readFileSync(path, "utf8"), (name, value) =>
    name === "DependsOn" ? [value].flat() : value,
  );

test.each([
  ["data", "one"],
  ["functions", "one"],
  ["all", "one"],
  ["all", "each"],
])("cdk synth includes the template of %s unchanged, in shape %s", async (part, shape) => {
  const own =
    part === "all" ? ["--with", "infra/own.json", "--with", `infra/own-${shape}.json`] : [];
  const options = ["--part", part, "--shape", shape, ...own, "--out", output];
  await infra(["examples/files/server.ts", ...options]);
  const file = join(output, `${part}-dev.json`);
  await synth(`${join(tools, "cdk-app.mjs")} ${file}`);

  expect(read(join(output, "cdk/Included.template.json"))).toEqual(read(file));
});

test("the CDK app of examples/moving synthesises the generated data and functions", async () => {
  const cognito = { COGNITO_ISSUER: "https://cognito.example", COGNITO_CLIENT: "client" };
  const parts = ["data", "functions"];
  for (const part of parts) {
    const own = part === "functions" ? ["--with", "examples/moving/stage-4/auth.json"] : [];
    const options = ["--part", part, "--stage", "prod", ...own, "--out", output];
    await infra(["examples/moving/stage-4/server.ts", ...options], cognito);
  }
  const folder = mkdtempSync(join(tools, ".keelson-moving-")); // where the CDK is installed
  try {
    cpSync(join(root, "examples/moving/stage-5/cdk-app.mjs"), join(folder, "cdk-app.mjs"));
    await synth(join(folder, "cdk-app.mjs"), { TEMPLATES: output });
  } finally {
    rmSync(folder, { recursive: true });
  }
  for (const part of parts) {
    const generated = read(join(output, `${part}-prod.json`));
    const { Resources, Outputs } = read(join(output, `cdk/orders-prod-${part}.template.json`));
    expect({ Resources, Outputs }).toEqual({
      Resources: generated.Resources,
      Outputs: generated.Outputs,
    });
  }
  // The API has no authorizer: without these, the functions would refuse every request.
  const { Resources } = read(join(output, "functions-prod.json"));
  expect(Resources.HttpLambdaFunction.Properties.Environment.Variables).toMatchObject({
    COGNITO_ISSUER: { "Fn::Sub": expect.stringContaining("UserPool") },
    COGNITO_CLIENT: { Ref: "UserPoolClient" },
  });
});
