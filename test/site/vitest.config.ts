import { defineConfig } from "vitest/config";

// Run by `npm run docs:test`: the site that `npm run docs:build` has written, in this machine's Chromium.
export default defineConfig({
  test: {
    include: ["test/site/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: "forks",
  },
});
