import { defineConfig } from "vitest/config";
import { alias } from "../../vitest.config.ts";

// What `npm run test:deploy` runs: the package, and the stack of it in a LocalStack that it gets.
// biome-ignore lint/style/noDefaultExport: vitest takes no other
export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/deploy/*.deploy.ts"],
    globalSetup: ["test/deploy/localstack.setup.mjs"],
    fileParallelism: false, // each packages into the same folders
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    pool: "forks",
  },
});
