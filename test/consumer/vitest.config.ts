import { defineConfig } from "vitest/config";

// Run by `npm run test:consumer`: the package as npm packs it, installed in projects outside this repository.
export default defineConfig({
  test: {
    include: ["test/consumer/*.test.ts"],
    globalSetup: ["test/consumer/support/tarball.setup.ts"],
    testTimeout: 300_000,
    hookTimeout: 600_000, // of an installation on a busy machine
    expect: { poll: { timeout: 120_000 } },
    teardownTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
  },
});
