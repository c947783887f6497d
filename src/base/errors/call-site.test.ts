import { afterEach, describe, expect, test, vi } from "vitest";
import { callSite, placed, placeIn } from "./call-site.ts";

const installed = "file:///app/node_modules/keelson/dist/base/errors/call-site.js";
const own = "    at report (file:///app/node_modules/keelson/dist/app/features/feature.js:112:30)";
const stack = (...frames: readonly string[]) => ["Error", own, ...frames].join("\n");
const place = (...frames: readonly string[]) => placeIn(stack(...frames), installed, "/app");

afterEach(() => vi.restoreAllMocks());

test("the place is this file, although keelson's sources are around it", () => {
  const line = Number(/call-site\.test\.ts:(\d+)/.exec(String(new Error().stack))?.[1]);
  expect(callSite()).toBe(`src/base/errors/call-site.test.ts:${line + 1}`);
});

describe("a frame", () => {
  test.each([
    ["of a function", "    at notes (file:///app/src/notes.ts:12:5)", "src/notes.ts:12"],
    ["without a function", "    at file:///app/src/notes.ts:12:5", "src/notes.ts:12"],
    ["of a path", "    at Object.<anonymous> (/app/src/notes.js:12:5)", "src/notes.js:12"],
    ["of a method", "    at Notes.of [as make] (/app/notes.js:12:5)", "notes.js:12"],
    ["that awaits", "    at async main (file:///app/main.ts:7:1)", "main.ts:7"],
    ["that awaits, without a function", "    at async file:///app/main.ts:7:1", "main.ts:7"],
    ["elsewhere", "    at file:///lib/notes.ts:12:5", "/lib/notes.ts:12"],
    ["next to the directory", "    at file:///app2/notes.ts:12:5", "/app2/notes.ts:12"],
    ["with odd letters", "    at file:///app/a%20(b)/%C3%BC.ts:1:5", "a (b)/ü.ts:1"],
    ["in odd folders", "    at notes (/app/my (app)/notes.ts:1:5)", "my (app)/notes.ts:1"],
    ["of a versioned module", "    at file:///app/notes.ts?v=2:12:5", "notes.ts:12"],
    [
      "of a dependency",
      "    at file:///app/node_modules/other/a.js:1:1",
      "node_modules/other/a.js:1",
    ],
  ])("%s is a place", (_what, frame, found) => {
    expect(place(frame)).toBe(found);
  });

  test.each([
    ["of keelson", own],
    ["of another copy", "    at a (/lib/node_modules/keelson/dist/index.js:1:1)"],
    ["of Node", "    at ModuleJob.run (node:internal/modules/esm/module_job:439:25)"],
    ["of V8", "    at Array.map (<anonymous>)"],
    ["of native code", "    at native"],
    ["of a promise", "    at async Promise.all (index 0)"],
    ["of eval", "    at eval (eval at notes (file:///app/notes.ts:3:1), <anonymous>:1:5)"],
    ["of eval without a place", "    at eval (eval at a (eval code), <anonymous>:1:5)"],
    ["of a named script", "    at notes (evalmachine.<anonymous>:1:1)"],
    ["of no stack", "a text"],
  ])("%s is skipped", (_what, frame) => {
    expect(place(frame)).toBeUndefined();
    expect(place(frame, "    at /app/notes.ts:12:5")).toBe("notes.ts:12");
  });
});

test.each([
  ["C:\\app", "file:///c:/app/src/notes.ts", "src/notes.ts:1"],
  ["c:\\app\\", "C:\\app\\src\\notes.ts", "src/notes.ts:1"],
  ["C:\\app", "D:\\lib\\notes.ts", "D:/lib/notes.ts:1"],
  ["C:\\app", "file://server/share/notes.ts", "//server/share/notes.ts:1"],
  ["C:\\app", "file:///C:/app/node_modules/keelson/dist/index.js", undefined],
  ["/", "/app/notes.ts", "app/notes.ts:1"],
])("in %s, %s is %s", (cwd, file, found) => {
  expect(placeIn(stack(`    at notes (${file}:1:5)`), installed, cwd)).toBe(found);
});

test("in keelson's repository, only tests and what is beside the sources are applications", () => {
  for (const folder of ["src", "dist"]) {
    const module = `file:///keelson/${folder}/base/errors/call-site.ts`;
    const found = (file: string) =>
      placeIn(
        `Error\n    at ${module}:1:1\n    at file:///keelson/${file}:1:1`,
        module,
        "/keelson",
      );
    expect(found("src/app/server/server.ts")).toBeUndefined();
    expect(found("dist/app/server/server.js")).toBeUndefined();
    expect(found("src/app/server/server.test.ts")).toBe("src/app/server/server.test.ts:1");
    expect(found("examples/files/server.ts")).toBe("examples/files/server.ts:1");
  }
});

test.each([
  ["a bundle", stack("    at /app/notes.ts:12:5"), "file:///app/function.mjs"],
  ["a bundle with the module's URL", "Error\n    at /app/function.js:12:5", installed],
  ["a bundle of another format", stack("    at /app/notes.ts:12:5"), undefined],
  ["an application's own stack", [{ getFileName: () => "/app/notes.ts" }], installed],
  ["no stack", undefined, installed],
])("%s gives no place", (_what, given, module) => {
  expect(placeIn(given, module, "/app")).toBeUndefined();
});

test("a long stack is read to its end, and the limit stays as it was", () => {
  const deep = (depth: number): string | undefined => (depth === 0 ? callSite() : deep(depth - 1));
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    expect(deep(3)).toMatch(/^src\/base\/errors\/call-site\.test\.ts:\d+$/);
    expect(Error.stackTraceLimit).toBe(0);
  } finally {
    Error.stackTraceLimit = limit;
  }
});

test("it never throws", () => {
  vi.spyOn(process, "cwd").mockImplementation(() => {
    throw new Error("the directory is gone");
  });
  expect(callSite()).toBeUndefined();
  const problems: { readonly at?: string; readonly rule: string }[] = [{ rule: "one" }];
  expect(placed(problems)).toBe(problems);
});

test("problems keep their places, and the others get the caller's", () => {
  const [first, second] = placed<{ at?: string; rule: string }>([
    { at: "a.ts:1", rule: "one" },
    { rule: "two" },
  ]);
  expect(first).toEqual({ at: "a.ts:1", rule: "one" });
  expect(second).toEqual({
    at: expect.stringMatching(/^src\/base\/errors\/call-site\.test\.ts:\d+$/),
    rule: "two",
  });
});
