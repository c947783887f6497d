import { defineConfig } from "vitest/config";
import { alias } from "../../vitest.config.ts";

// Run by `npm run test:races`: thousands of orders of the sample's concurrent work. Its files run at the same time.
export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/races/*.race.ts"],
    testTimeout: 1_200_000,
    hookTimeout: 300_000,
    pool: "forks",
    maxWorkers: 2,
  },
});
