import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { copiesOf } from "./support/installed.ts";
import { createProject, type Outcome, type Project, projectIn } from "./support/project.ts";

/** Package managers and runtimes as npm has them; on other systems the last two have packages of other names. */
const isLinux = process.platform === "linux" && process.arch === "x64";
const binaries = { "@oven/bun-linux-x64": "1.4.5", "@deno/linux-x64-glibc": "2.9.6" };
const peers = [
  "@aws-sdk/client-dynamodb",
  "@middy/core",
  "@aws-lambda-powertools/commons",
  "@aws-lambda-powertools/logger",
];

let tools: Project;
beforeAll(async () => {
  tools = await createProject({
    name: "package-managers",
    devDependencies: {
      pnpm: "12.21.0",
      "@yarnpkg/cli-dist": "4.18.1",
      ...(isLinux ? binaries : {}),
    },
    files: {},
  });
});

const tool = (path: string) => join(tools.directory, "node_modules", path);

/** A project as `keelson init` makes it, not installed, with the packed package. */
async function starter(name: string): Promise<Project> {
  const { tarball, projects } = inject("consumer");
  const parent = projectIn(mkdtempSync(join(projects, `${name}-`)));
  const made = await parent.run("node", [
    tool("keelson/dist/tools/cli/main.js"),
    "init",
    name,
    "--yes",
    "--no-install",
  ]);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  const project = projectIn(join(parent.directory, name));
  const edit = `const fs = require("node:fs");
    const manifest = JSON.parse(fs.readFileSync("package.json", "utf8"));
    manifest.dependencies.keelson = ${JSON.stringify(`file:${tarball}`)};
    fs.writeFileSync("package.json", JSON.stringify(manifest));`;
  expect(await project.run("node", ["--eval", edit])).toMatchObject({ code: 0 });
  return project;
}

function succeeded({ code, stdout, stderr }: Outcome): string {
  const output = stripVTControlCharacters(stdout + stderr);
  expect({ code, output: code === 0 ? "" : output }).toEqual({ code: 0, output: "" });
  return output;
}

/** Whether the container serves, and ends cleanly. */
async function serves(project: Project, command: string, args: readonly string[]): Promise<void> {
  const container = project.start(command, args, {
    env: { PORT: "0", NO_COLOR: "1", KEELSON_WATCH: "1" },
  });
  const [, port] = await container.printed(/server\.started.*\bport=(\d+)/);
  expect((await fetch(`http://127.0.0.1:${port}/health/ready`)).status).toBe(200);
  await container.stop();
  expect(container.output()).toMatch(/shutdown\.completed clean=true/);
}

test.each(["3.723.0", "3.1000.0"])(
  "npm installs keelson next to an SDK of version %s, which stays the only one",
  async (version) => {
    const sdk = { "@aws-sdk/client-dynamodb": version, "@aws-sdk/lib-dynamodb": version };
    const project = await createProject({ name: "pinned", dependencies: sdk, files: {} });

    expect(copiesOf(project.directory, "@aws-sdk/client-dynamodb")).toEqual([version]);
    const imported = ["--input-type=module", "--eval", 'await import("keelson/container")'];
    expect(await project.run("node", imported)).toMatchObject({ code: 0, stderr: "" });
  },
);

test("pnpm installs the project that init makes, tests, bundles and starts it", async () => {
  const project = await starter("with-pnpm");
  const pnpm = (...args: readonly string[]) =>
    project.run("node", [tool("pnpm/bin/pnpm.mjs"), ...args]);

  succeeded(await pnpm("install", "--store-dir", join(project.directory, "../store")));
  expect(succeeded(await pnpm("test"))).toMatch(/Tests\s+3 passed/);
  succeeded(await pnpm("run", "check"));
  succeeded(await pnpm("run", "bundle"));
  expect(succeeded(await pnpm("run", "token"))).toMatch(/^ey/m);
  await serves(project, "node", [tool("pnpm/bin/pnpm.mjs"), "start"]);
});

test("Yarn with Plug'n'Play tests, bundles and starts it, once it has its peers", async () => {
  const project = await starter("with-yarn");
  const bin = tool("@yarnpkg/cli-dist/bin/yarn.js");
  const env = {
    YARN_ENABLE_TELEMETRY: "0",
    YARN_GLOBAL_FOLDER: join(project.directory, "../global"),
  };
  const yarn = (...args: readonly string[]) => project.run("node", [bin, ...args], { env });
  project.write("yarn.lock", "");

  succeeded(await yarn("add", ...peers));
  succeeded(await yarn("add", "--dev", "vite@8")); // vitest's own peer
  expect(succeeded(await yarn("test"))).toMatch(/Tests\s+3 passed/);
  succeeded(await yarn("run", "bundle"));
  expect(
    await project.run("node", [
      "--eval",
      'import("./dist/lambda.mjs").then(({ http }) => console.log(typeof http))',
    ]),
  ).toMatchObject({
    stdout: "function\n",
  });
  expect(
    succeeded(
      await yarn(
        "node",
        "--env-file=development.env",
        "-e",
        'import("keelson/embedded").then(async ({ startEmbeddedStack }) => (await startEmbeddedStack()).close())',
      ),
    ),
  ).toBe("");
});

describe.runIf(isLinux)("in runtimes other than Node", () => {
  test("Bun installs, tests and starts it", async () => {
    const project = await starter("with-bun");
    const bun = tool("@oven/bun-linux-x64/bin/bun");
    const env = { BUN_INSTALL_CACHE_DIR: join(project.directory, "../cache") };

    succeeded(await project.run(bun, ["install"], { env }));
    expect(succeeded(await project.run(bun, ["--bun", "run", "test"]))).toMatch(/Tests\s+3 passed/);
    succeeded(await project.run(bun, ["--bun", "run", "bundle"]));
    await serves(project, bun, ["--env-file=development.env", "src/main.ts"]);
  });

  test("Deno tests and starts it, with what npm has installed", async () => {
    const project = await starter("with-deno");
    const deno = tool("@deno/linux-x64-glibc/deno");
    project.write("deno.json", '{ "nodeModulesDir": "manual" }');

    succeeded(await project.run("npm", ["install", "--no-audit", "--no-fund"]));
    expect(
      succeeded(await project.run(deno, ["run", "-A", "node_modules/vitest/vitest.mjs", "run"])),
    ).toMatch(/Tests\s+3 passed/);
    succeeded(await project.run(deno, ["run", "-A", "scripts/bundle.mjs"]));
    await serves(project, deno, ["run", "-A", "--env-file=development.env", "src/main.ts"]);
  });
});
