import { defineConfig } from "vitest/config";

// What `npm run test:browser` runs: the browser's logger and the retrying fetch in a real Chromium, which `npm test` does without.
export default defineConfig({
  test: {
    include: ["test/browser/*.browser.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: "forks",
  },
});
