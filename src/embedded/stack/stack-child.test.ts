import { expect, test } from "vitest";
import { stackVariables } from "./stack-child.ts";

const parents = {
  PATH: "/bin",
  Path: "C:\\bin",
  TMPDIR: "/tmp",
  NODE_COMPILE_CACHE: "/cache",
  WATCH_REPORT_DEPENDENCIES: "1",
  NODE_OPTIONS: "--import tsx",
  NODE_CHANNEL_FD: "3",
  NODE_V8_COVERAGE: "coverage",
  VSCODE_INSPECTOR_OPTIONS: "{}",
  AWS_SECRET_ACCESS_KEY: "secret",
};

test("a stack gets what Node needs of its parent's environment, and nothing of watchers, debuggers, loaders and accounts", () => {
  expect(stackVariables(parents)).toEqual({
    PATH: "/bin",
    Path: "C:\\bin",
    TMPDIR: "/tmp",
    NODE_COMPILE_CACHE: "/cache",
  });
});

test("with Plug'n'Play it gets the loader that finds packages", () => {
  expect(stackVariables(parents, true)).toHaveProperty("NODE_OPTIONS", "--import tsx");
});
