import { defineConfig } from "vitest/config";

// Stryker runs this in its copy of the sources, one mutant after the other.
export default defineConfig({
  test: {
    include: (process.env["KEELSON_MUTATION_TESTS"] ?? "").split(","),
    setupFiles: ["test/mutation/setup.ts"],
    testTimeout: Number(process.env["KEELSON_MUTATION_TIMEOUT"]), // a test that a mutant hangs fails
  },
});
