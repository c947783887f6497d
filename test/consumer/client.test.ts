import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { createProject, type Project } from "./support/project.ts";

const root = join(import.meta.dirname, "../..");
const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { dependencies: benchDependencies } = JSON.parse(
  readFileSync(join(root, "bench/package.json"), "utf8"),
);
const compilers = {
  typescript: "5.9.3",
  ts57: "npm:typescript@5.7",
  ts7: `npm:typescript@${devDependencies.typescript}`,
};
const directory = mkdtempSync(join(tmpdir(), "keelson-client-"));

let project: Project;
let sample: StartedProcess;
beforeAll(async () => {
  project = await createProject({
    name: "client",
    dependencies: { "openapi-fetch": devDependencies["openapi-fetch"] },
    devDependencies: {
      "openapi-typescript": benchDependencies["openapi-typescript"],
      ...compilers,
    },
    files: {
      "openapi.json": readFileSync(join(root, "test/fixtures/files-api.json"), "utf8"),
      "client.ts": readFileSync(join(import.meta.dirname, "projects/client.ts"), "utf8").replace(
        "../../fixtures/files-",
        "./",
      ),
    },
  });
  const { code, stdout, stderr } = await project.run("openapi-typescript", [
    "openapi.json",
    "-o",
    "api.d.ts",
  ]);
  if (code !== 0) throw new Error(`openapi-typescript ended with ${code}:\n${stdout}\n${stderr}`);
  const env = {
    PORT: "0",
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
    KEELSON_AUTH_SECRET: undefined,
  };
  const file = (path: string) => join(root, "examples/files", path);
  sample = await startProcess(
    process.execPath,
    [`--env-file=${file("development.env")}`, file("main.ts")],
    {
      NODE_ENV: undefined,
      ...env,
    },
  );
});
afterAll(async () => {
  if (sample !== undefined) {
    signalGroup(sample, "SIGKILL");
    await sample.exited;
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
});

test("the types used by the guide and the type tests match the output of openapi-typescript", () => {
  const made = readFileSync(join(project.directory, "api.d.ts"), "utf8");

  expect(readFileSync(join(root, "test/fixtures/files-api.d.ts"), "utf8")).toBe(made);
});

test.each(
  Object.keys(compilers).flatMap((compiler) => [
    { compiler, module: "esnext", moduleResolution: "bundler" },
    { compiler, module: "nodenext", moduleResolution: "nodenext" },
  ]),
)(
  "a browser client compiles strictly without Node's types: $compiler, $moduleResolution",
  async ({ compiler, ...modules }) => {
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
    };
    const page = {
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
      noEmit: true,
      allowImportingTsExtensions: true,
    };
    const config = `tsconfig.${compiler}.${modules.module}.json`;
    project.write(
      config,
      JSON.stringify({ compilerOptions: { ...strict, ...page, ...modules }, files: ["client.ts"] }),
    );
    const { stdout } = await project.run("node", [
      `node_modules/${compiler}/bin/tsc`,
      "-p",
      config,
    ]);

    expect(stdout).toBe("");
  },
);

test("the client gets typed answers and errors from the sample, and one file for a write that is sent twice", async () => {
  const signed = await project.run("keelson", ["token", "--tenant", "acme", "--user", "ann"], {
    env: { NODE_ENV: "development", KEELSON_DIRECTORY: directory },
  });
  const { code, stdout, stderr } = await project.run("node", ["client.ts"], {
    env: { API: `http://127.0.0.1:${sample.port}`, TOKEN: signed.stdout.trim() },
  });

  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({
    made: { id: expect.any(String), name: "a.txt", sizeMb: 1 },
    attempts: 2,
    files: ["a.txt"],
    lost: "not_found",
    requestId: "r-7",
    wrong: ["sizeMb"],
  });
});

test("the guide's command generates the types with its own TypeScript, independent of the project", async () => {
  const guide = readFileSync(join(root, "docs/client.md"), "utf8");
  const [, command = ""] = /`npm (exec [^`]+)`/.exec(guide) ?? [];
  const env = { npm_config_yes: "true" };
  const { code, stderr } = await project.run(
    "npm",
    command.replace("-o api.d.ts", "-o own.d.ts").split(" "),
    { env },
  );

  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(readFileSync(join(project.directory, "own.d.ts"), "utf8")).toContain('"/files/{id}": {');
});
