import { defineConfig } from "vitest/config";
import { alias, replacements } from "../../vitest.config.ts";
import { replacedModules } from "../support/replaced-modules.ts";

// Run by `npm run test:fronts`: the HTTP checks of the specification and of streams, through each of Lambda's fronts.
const front = {
  module: "src/hosts/container-http/http-server.ts",
  only: "src/tools/testing/app/test-process.ts",
  by: "test/fronts/http-server.ts",
  because: "a test app's requests come through one of Lambda's fronts",
};
export default defineConfig({
  resolve: { alias },
  plugins: [replacedModules([...replacements, front])],
  test: {
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: "forks",
    projects: ["web", "http", "rest", "url"].map((name) => ({
      extends: true,
      test: {
        name,
        env: { KEELSON_TEST_FRONT: name },
        include: [
          "test/conformance/{client-log,contexts,counts,errors,events,identity,logging,once,operators}.test.ts",
          "test/integration/{typed-streams,streamed-replies,web-responses}.test.ts",
          // Functions have no connections.
          ...(name === "web" ? ["test/integration/sockets.system.test.ts"] : []),
        ],
        setupFiles: [
          "test/fronts/differences.ts",
          "test/support/known-lines.ts",
          "test/support/hold-responses.ts",
        ],
      },
    })),
  },
});
