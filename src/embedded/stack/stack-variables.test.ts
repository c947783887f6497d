import { expect, test } from "vitest";
import { stackVariables } from "./stack.ts";

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

test("passes on only what Node needs of the parent's environment", () => {
  expect(stackVariables(parents)).toEqual({
    PATH: "/bin",
    Path: "C:\\bin",
    TMPDIR: "/tmp",
    NODE_COMPILE_CACHE: "/cache",
  });
});

test("with Plug'n'Play, passes on the loader that finds packages", () => {
  expect(stackVariables(parents, true)).toHaveProperty("NODE_OPTIONS", "--import tsx");
});
