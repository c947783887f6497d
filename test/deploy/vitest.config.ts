import { defineConfig } from "vitest/config";
import { alias } from "../../vitest.config.ts";

// Run by `npm run test:deploy`: the package, and its stack in a LocalStack.
export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/deploy/*.deploy.ts"],
    globalSetup: ["test/deploy/localstack.setup.mjs"],
    fileParallelism: false, // each packages into the same folders
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: "forks",
  },
});
