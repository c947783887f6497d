import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createProject, type Project } from "./support/project.ts";

const { devDependencies, dependencies, peerDependencies } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"),
);
const source = (name: string) => readFileSync(join(import.meta.dirname, "projects", name), "utf8");
const compilers = { ts57: "5.7", ts59: "5.9", ts7: "7" };
const exact = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, devDependencies[name]]));
const middlewares = Object.keys(devDependencies).filter((name) =>
  /^@middy\/(http-(?!multi|url)|input-)/.test(name),
);
// Packages of Powertools ask for one another in the very same version.
const powertools = ["commons", "idempotency", "logger"].map((name) => [
  `@aws-lambda-powertools/${name}`,
  devDependencies["@aws-lambda-powertools/idempotency"],
]);

let project: Project;
beforeAll(async () => {
  project = await createProject({
    name: "types",
    dependencies: { ...exact(["zod", ...middlewares]), ...Object.fromEntries(powertools) },
    devDependencies: {
      ...exact(["@types/node"]),
      ...Object.fromEntries(
        Object.entries(compilers).map(([name, version]) => [name, `npm:typescript@${version}`]),
      ),
    },
    files: { "types.ts": source("types.ts"), "middy-types.ts": source("middy-types.ts") },
  });
});

async function compile(
  compiler: string,
  file: string,
  options: Readonly<Record<string, unknown>>,
): Promise<string> {
  const config = `tsconfig.${compiler}.${Object.values(options).join("-")}.${file}.json`;
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "es2022",
    lib: ["es2022"],
    types: ["node"],
    ...options,
  };
  project.write(config, JSON.stringify({ compilerOptions, files: [file] }));
  const { stdout, stderr } = await project.run("node", [
    `node_modules/${compiler}/bin/tsc`,
    "-p",
    config,
  ]);
  return `${stdout}${stderr}`;
}

const nodenext = { module: "nodenext", moduleResolution: "nodenext" };
const bundler = { module: "esnext", moduleResolution: "bundler" };

// All settings with the fast compiler; with the others each of them once.
test.each([
  ...["ts57", "ts59", "ts7"].flatMap((compiler) => [
    { compiler, ...nodenext, exactOptionalPropertyTypes: true },
    { compiler, ...bundler, exactOptionalPropertyTypes: false },
  ]),
  { compiler: "ts7", ...nodenext, exactOptionalPropertyTypes: false },
  { compiler: "ts7", ...bundler, exactOptionalPropertyTypes: true },
])(
  "the package's declarations and code that uses them compile: $compiler, $moduleResolution, exactOptionalPropertyTypes $exactOptionalPropertyTypes",
  async ({ compiler, ...options }) => {
    expect(await compile(compiler, "types.ts", { ...options, skipLibCheck: false })).toBe("");
  },
);

// Without `skipLibCheck` Middy's own declarations would fail: they import a package that hardly anybody has.
test.each([
  { compiler: "ts57", exactOptionalPropertyTypes: true },
  { compiler: "ts7", exactOptionalPropertyTypes: true },
  { compiler: "ts7", exactOptionalPropertyTypes: false },
])(
  "Middy's types and keelson's are assignable to each other: $compiler, exactOptionalPropertyTypes $exactOptionalPropertyTypes",
  async ({ compiler, exactOptionalPropertyTypes }) => {
    const options = { ...nodenext, exactOptionalPropertyTypes, skipLibCheck: true };
    expect(await compile(compiler, "middy-types.ts", options)).toBe("");
  },
);

test("code that uses the package compiles with the lowest versions of its declarations' dependencies", async () => {
  const ranges: Record<string, string> = { ...dependencies, ...peerDependencies };
  const lowest = (name: string) => /\d+\.\d+\.\d+/.exec(ranges[name] ?? "")?.[0] ?? "";
  const peers = Object.keys(peerDependencies).filter((name) => name !== "dynalite");
  const old = await createProject({
    name: "lowest-types",
    isFresh: true,
    dependencies: {
      ...exact(["zod"]),
      ...Object.fromEntries(peers.map((name) => [name, lowest(name)])),
    },
    devDependencies: { typescript: compilers.ts57 },
    files: { "types.ts": source("types.ts") },
    packageJson: {
      overrides: {
        keelson: Object.fromEntries(Object.keys(dependencies).map((name) => [name, lowest(name)])),
      },
    },
  });
  // What those versions declare themselves is theirs.
  const options = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--types",
    "node",
  ];
  const { stdout } = await old.run("node", [
    "node_modules/typescript/bin/tsc",
    ...options,
    "types.ts",
  ]);

  expect(stdout).toBe("");
});

test("keelson/middy compiles without Powertools Idempotency, which is optional", async () => {
  const bare = await createProject({
    name: "bare-types",
    devDependencies: exact(["@types/node", "typescript"]),
    files: {
      "middy.ts":
        'import { requestScope, writeOnce } from "keelson/middy";\nvoid [requestScope, writeOnce];\n',
    },
  });
  const options = [
    "--noEmit",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--types",
    "node",
    "middy.ts",
  ];

  expect(await bare.run("node", ["node_modules/typescript/bin/tsc", ...options])).toMatchObject({
    code: 0,
    stdout: "",
  });
});
