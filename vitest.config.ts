import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { type Replacement, replacedModules } from "./test/support/replaced-modules.ts";

/** Replacements that tests load for modules of `src/`. Each run prints them; `CONTRIBUTING.md` has the reasons. */
export const replacements: readonly Replacement[] = [
  {
    module: "src/app/run/pipeline.ts",
    by: "test/support/held/pipeline.ts",
    because: "each answer of the container is held against its server's OpenAPI document",
  },
  {
    module: "src/hosts/lambda-http/execution-mode.ts",
    by: "test/support/held/execution-mode.ts",
    because: "each answer of a function is held against its server's OpenAPI document",
  },
  {
    module: "src/embedded/stack/index.ts",
    only: "src/tools/testing/app/test-stack.ts",
    by: "test/support/stacks/shared-stack.ts",
    because: "the stacks of all test apps of a process share one other process",
  },
];

/** Returns a number from the checked-out sources; 1 without Git. */
function seedOfSources(): string {
  const { stdout } = spawnSync("git", ["rev-parse", "HEAD^{tree}"], { cwd: import.meta.dirname });
  return String(Number.parseInt(String(stdout ?? "").slice(0, 7), 16) || 1);
}

const source = (path: string) => join(import.meta.dirname, "src", path);

/** The package by its own name, from the sources. */
export const alias = [
  { find: /^keelson$/, replacement: source("index.ts") },
  { find: "keelson/lambda", replacement: source("hosts/lambda/index.ts") },
  { find: "keelson/container", replacement: source("hosts/container/index.ts") },
  { find: "keelson/operators", replacement: source("app/operators/index.ts") },
  { find: "keelson/middy", replacement: source("hosts/middy/middy.ts") },
  { find: "keelson/claim-layer", replacement: source("hosts/claim-layer/index.ts") },
  { find: "keelson/browser", replacement: source("clients/browser/index.ts") },
  { find: "keelson/fetch", replacement: source("clients/fetch/index.ts") },
  { find: "keelson/embedded", replacement: source("embedded/stack/index.ts") },
  { find: "keelson/testing", replacement: source("tools/testing/index.ts") },
  { find: "keelson/bundle", replacement: source("tools/bundle/index.ts") },
  { find: "keelson/webhooks", replacement: source("parts/webhooks/index.ts") },
];

const tests = ["src/**/*.test.ts", "examples/**/*.test.ts", "test/!(consumer|site)/**/*.test.ts"]; // consumers' projects and the site run separately
const others = ["**/node_modules/**"]; // some folders below test/ are packages
// Tests that wait in real time: several processes, kills, sockets, shutdowns, sessions of documents, load.
const system = tests.map((pattern) => pattern.replace("*.test.ts", "*.system.test.ts"));
const systemOfSources = system.filter((pattern) => pattern.startsWith("src/"));
// Files share processes, except a file whose first line is `// own process: <reason>`; see test/integration/own-process.test.ts.
const alone = globSync(tests, { cwd: import.meta.dirname, exclude: others }).filter((file) =>
  readFileSync(join(import.meta.dirname, file), "utf8").startsWith("// own process: "),
);

// Hundreds of processes load the same sources and the same SDK. Sharing the compiled code halves their start.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "node_modules/.cache/compiled");

// With coverage, properties are tried as often as they say, except in `.ci/run`; see test/support/runs.ts.
if (process.argv.includes("--coverage")) process.env["KEELSON_TEST_RUNS"] ??= "all";

// Each state of the sources tries other random values, and tries the same ones whenever its tests run again.
process.env["KEELSON_TEST_SEED"] ??= seedOfSources();

// Check log lines against docs/messages.md, and responses against the OpenAPI document of their server.
const everywhere = [
  "test/support/seed.ts",
  "test/support/known-lines.ts",
  "test/support/hold-responses.ts",
];

// `npm test` runs all projects but `system` and `system-src`, and `npm run test:system` runs these two.
export default defineConfig({
  resolve: { alias },
  plugins: [replacedModules(replacements)],
  test: {
    testTimeout: 300_000, // of tests that share two cores with three others
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } }, // a condition that is waited for
    pool: "forks",
    maxWorkers: Math.max(4, availableParallelism()), // tests wait more than they compute
    projects: [
      {
        extends: true,
        test: {
          name: "shared", // many files a process, which setup leaves as it found it
          include: tests,
          exclude: [...system, ...alone, ...others],
          isolate: false,
          setupFiles: ["test/support/leave-no-trace.ts", ...everywhere],
        },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: alone,
          exclude: [...system, ...others],
          setupFiles: everywhere,
        },
      },
      {
        extends: true,
        test: {
          name: "system-src", // next to the sources, so they count for coverage
          include: systemOfSources,
          exclude: others,
          setupFiles: everywhere,
        },
      },
      {
        extends: true,
        test: {
          name: "system",
          include: system,
          exclude: [...systemOfSources, ...others],
          setupFiles: everywhere,
        },
      },
      {
        extends: true,
        test: {
          name: "types",
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            include: ["test/types/**/*.test-d.ts"],
            tsconfig: "test/types/tsconfig.json", // only these files: `npm run check` compiles the rest
          },
        },
      },
    ],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/**/*.test.ts"],
      reporter: [["text", { skipFull: true }], "text-summary", "json", "html"],
      // Of `npm run coverage`. A branch that no test can reach has a comment with the reason.
      thresholds: { branches: 100, perFile: true }, // an error names its file
    },
  },
});
