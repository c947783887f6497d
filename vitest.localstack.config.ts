import { defineConfig } from "vitest/config";

// What `npm run test:localstack` runs: the contract suites against a LocalStack, which `npm test`
// does without.
export default defineConfig({
  test: {
    include: ["test/localstack/*.contract.ts"],
    testTimeout: 120_000, // the first call of a service takes seconds
    hookTimeout: 120_000,
    pool: "forks",
  },
});
