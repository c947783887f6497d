import { defineConfig } from "vitest/config";

export default defineConfig({
  // The first test also starts the stack, which takes seconds on a busy machine.
  test: { testTimeout: 60_000, hookTimeout: 60_000 },
});
