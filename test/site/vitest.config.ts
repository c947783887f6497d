import { defineConfig } from "vitest/config";

// Run by `npm run docs:test`: the site that `npm run docs:build` has written, in this machine's Chromium.
// biome-ignore lint/style/noDefaultExport: vitest requires it
export default defineConfig({
  test: {
    include: ["test/site/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 30_000 } },
    pool: "forks",
  },
});
