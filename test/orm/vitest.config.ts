import { defineConfig } from "vitest/config";
import { alias } from "../../vitest.config.ts";

// Run by `npm run test:orm`. It installs the libraries of this folder's package first.
export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/orm/*.orm.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000, // of an installation on a busy machine
    pool: "forks",
  },
});
