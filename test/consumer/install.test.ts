import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { beforeAll, expect, test } from "vitest";
import { copiesOf, weigh } from "./support/installed.ts";
import { createProject, type Project } from "./support/project.ts";

const { exports, devDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"),
);
const entryPoints = Object.keys(exports)
  .filter((path) => !path.endsWith(".json"))
  .map((path) => path.replace(/^\./, "keelson"));

/** It depends on nothing but keelson. */
let project: Project;
/** It depends on what is optional, too. */
let whole: Project;
beforeAll(async () => {
  project = await createProject({ name: "install", files: {} });
  // All packages of Powertools have one version: each asks for the others of its own.
  const version = devDependencies["@aws-lambda-powertools/idempotency"];
  const powertools = ["commons", "idempotency", "logger"].map((name) => [
    `@aws-lambda-powertools/${name}`,
    version,
  ]);
  whole = await createProject({
    name: "whole",
    dependencies: { ...Object.fromEntries(powertools), dynalite: "4" },
    files: {},
    isFresh: true,
  });
});

const importing = (where: Project, name: string) =>
  where.run("node", [
    "--input-type=module",
    "--eval",
    `console.log(Object.keys(await import("${name}")).length)`,
  ]);

test.each(entryPoints)(
  "%s can be imported by a project with all optional dependencies installed",
  async (entryPoint) => {
    const { code, stdout, stderr } = await importing(whole, entryPoint);

    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(Number(stdout)).toBeGreaterThan(0);
  },
);

test.each(entryPoints.filter((name) => name !== "keelson/claim-layer"))(
  "%s can be imported by a project without optional dependencies",
  async (entryPoint) => {
    expect(await importing(project, entryPoint)).toMatchObject({ code: 0, stderr: "" });
  },
);

test("keelson/claim-layer without Powertools Idempotency, and keelson/embedded without dynalite, name what is missing", async () => {
  const layer = await importing(project, "keelson/claim-layer");
  const started =
    'await (await import("keelson/embedded")).startEmbeddedStack({ env: { NODE_ENV: "test" } })';
  const embedded = await project.run("node", ["--input-type=module", "--eval", started]);

  expect(layer.code).not.toBe(0);
  expect(layer.stderr).toContain(
    "Cannot find package '@aws-lambda-powertools/idempotency' imported from",
  );
  expect(embedded.code).not.toBe(0);
  expect(embedded.stderr).toContain(
    "keelson/embedded: dynalite, an optional dependency, cannot be loaded; npm i -D dynalite@4",
  );
});

test("an installation weighs at most 40 MB with the AWS clients, and 9 MB without them", () => {
  const { all, besideAws } = weigh(project.directory);
  console.log(`an installation weighs ${all} MB, ${besideAws} MB of it beside the clients of AWS`);

  expect(all).toBeLessThanOrEqual(40);
  expect(besideAws).toBeLessThanOrEqual(9);
  expect(besideAws).toBeGreaterThan(2); // it did look
});

test("an installation adds no command but keelson, and does not replace the project's Node", async () => {
  const programs = readdirSync(join(project.directory, "node_modules/.bin")).map((name) =>
    name.replace(/\.(cmd|ps1)$/, ""),
  );

  expect([...new Set(programs)]).toEqual(["keelson"]);
  expect(await project.run("keelson", ["--help"])).toMatchObject({ code: 0, stderr: "" });
});

test("an installation has a single copy of each package that keelson shares with the application", () => {
  const shared = [
    "@aws-sdk/client-dynamodb",
    "@aws-sdk/lib-dynamodb",
    "@aws-sdk/util-dynamodb",
    "@middy/core",
  ];

  expect(shared.map((name) => [name, copiesOf(whole.directory, name).length])).toEqual(
    shared.map((name) => [name, 1]),
  );
});

test.each([
  // How a field is named that would overwrite another: the same on both sides.
  { folder: "clients/browser", shared: ["dist/base/log/record-names.js"] },
  { folder: "clients/fetch", shared: [] },
])(
  "keelson/$folder bundled for a browser includes no other package, and no server code",
  async ({ folder, shared }) => {
    const installed = realpathSync(join(project.directory, "node_modules/keelson"));
    const asked: string[] = [];
    const bundle = await rolldown({
      input: join(installed, `dist/${folder}/index.js`),
      platform: "browser",
      external: (id) => {
        if (!/^[./]/.test(id) && !id.includes(installed)) asked.push(id);
        return false;
      },
    });
    const { output } = await bundle.generate({ format: "esm" });
    await bundle.close();
    const files = output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []));
    const outside = files
      .map((file) => relative(installed, file).replaceAll("\\", "/"))
      .filter((file) => !file.startsWith(`dist/${folder}/`));

    expect(asked).toEqual([]);
    expect(
      output.flatMap((chunk) =>
        chunk.type === "chunk" ? [...chunk.imports, ...chunk.dynamicImports] : [],
      ),
    ).toEqual([]);
    expect(outside).toEqual(shared);
  },
);

test("keelson/fetch is at most 4 KB, and 2 KB compressed", async () => {
  const bundle = await rolldown({
    input: join(project.directory, "node_modules/keelson/dist/clients/fetch/index.js"),
    platform: "browser",
  });
  const { output } = await bundle.generate({ format: "esm", minify: true });
  await bundle.close();

  expect(output[0].code.length).toBeLessThanOrEqual(4_096);
  expect(gzipSync(output[0].code).length).toBeLessThanOrEqual(2_048);
});
