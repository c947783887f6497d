import { defineConfig } from "vitest/config";

const source = (path: string) => new URL(`./src/${path}`, import.meta.url).pathname;

/** The package by its own name, from the sources. */
export const alias = [
  { find: /^keelson$/, replacement: source("index.ts") },
  { find: "keelson/lambda", replacement: source("lambda/index.ts") },
  { find: "keelson/container", replacement: source("container/index.ts") },
  { find: "keelson/middy", replacement: source("lambda/middy.ts") },
  { find: "keelson/client", replacement: source("client/index.ts") },
  { find: "keelson/embedded", replacement: source("embedded/index.ts") },
  { find: "keelson/testing", replacement: source("testing/index.ts") },
];

export default defineConfig({
  resolve: { alias },
  test: {
    include: ["src/**/*.test.ts", "examples/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/**/*.test.ts", "src/**/*-contract.ts"],
      reporter: ["text-summary", "json", "html"],
      // A branch that no test reaches is marked where it stands, with the reason.
      thresholds: { branches: 100 },
    },
    typecheck: { enabled: true, include: ["test/types/**/*.test-d.ts"] },
  },
});
