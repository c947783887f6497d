import { defineConfig } from "vitest/config";

// What `npm run docs:test` runs: the site that `npm run docs:build` has made, in this machine's Chromium.
// biome-ignore lint/style/noDefaultExport: vitest takes no other
export default defineConfig({
  test: {
    include: ["test/site/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    pool: "forks",
  },
});
