import { defineConfig } from "vitest/config";
import { alias } from "./vitest.config.ts";

const endpoint = process.env["LOCALSTACK_ENDPOINT"];
if (!endpoint)
  throw new Error("LOCALSTACK_ENDPOINT is not set; run these suites with npm run test:localstack");

// What `npm run test:localstack` runs against a LocalStack: the contract suites, and tests of the embedded stack that meet
// what only another implementation of AWS shows: races for claims, redelivery, streams, fired schedules, traces across
// queues. What decides by its own clock and state, such as delayed jobs and time zones, is the same on any stack.
export default defineConfig({
  resolve: { alias },
  test: {
    include: [
      "test/localstack/*.contract.ts",
      "test/once/{isolation.system,powertools-defects.system,processes.system,steps,steps-ledger.system,writes}.test.ts",
      "test/integration/{chain,crash-hooks.system,indexes}.test.ts",
      "test/integration/{sample-billing,schedule-processes.system}.test.ts",
      "test/integration/{spans,trace-command,traces}.test.ts",
      "test/events/processes.system.test.ts",
      "src/hosts/lambda/{queue,stream.system}.test.ts",
      "src/hosts/container/workers.system.test.ts",
      "src/app/run/write-hooks.test.ts",
      "src/app/server/server-runs.test.ts",
      "src/aws/stores/{claim-store,slot-store,step-store,tenant-rows}.test.ts",
    ],
    env: { KEELSON_TEST_ENDPOINT: endpoint },
    globalSetup: ["test/localstack/load-services.ts"],
    setupFiles: ["test/support/seed.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: "forks",
    maxWorkers: 2, // the tests wait for LocalStack, which computes beside them
  },
});
