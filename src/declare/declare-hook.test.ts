import { expect, test } from "vitest";
import { BootError, type BootProblem } from "../errors/boot.ts";
import { buildServer } from "../server/server.ts";
import { defineFeature } from "./feature.ts";
import { createRegistry } from "./registry.ts";

/** Declares as plain JavaScript may. */
type Hook = (...given: readonly unknown[]) => void;

const run = async () => undefined;
const files = defineFeature("files", (r) => {
  r.write("file.create", { handler: run });
  r.query("file.list", { handler: run });
});
const hooking = (name: string, declare: (hook: Hook) => void) => defineFeature(name, (r) => declare(r.hook as Hook)); // so that it may be called wrongly

/** What is wrong with a server that has these features and `files`. */
function problemsOf(...features: readonly ReturnType<typeof hooking>[]): readonly BootProblem[] {
  try {
    buildServer({ features: [...features, files] });
  } catch (error) {
    if (error instanceof BootError) return error.problems;
    throw error;
  }
  return [];
}

const noFunction = (moment: string) => ({ rule: "handler", message: `\`${moment}\` is not a function` });

test.each<[what: string, given: readonly unknown[], ...problems: Partial<BootProblem>[]]>([
  ["one of each moment", ["files.file.create", { before: run, commit: run, after: run }]],
  ["one of one moment", ["files.file.create", { after: run, before: undefined }]],
  [
    "on a write that nobody declares",
    ["files.file.creat", { after: run }],
    {
      feature: "other",
      key: "hook files.file.creat",
      rule: "hook-undeclared",
      message: 'no feature of this server declares the write "files.file.creat"',
      fix: 'did you mean "files.file.create"?',
    },
  ],
  [
    "on what resembles nothing",
    ["billing.invoice.send", { after: run }],
    { rule: "hook-undeclared", fix: "name a write, or add the feature that declares it" },
  ],
  [
    "on a query",
    ["files.file.list", { after: run }],
    {
      key: "hook files.file.list",
      rule: "hook-query",
      message: '"files.file.list" is a query, and only writes have hooks',
      fix: "hook a write",
    },
  ],
  [
    "on keelson's own write",
    ["keelson.config.set", { after: run }],
    { rule: "hook-undeclared", message: 'no feature of this server declares the write "keelson.config.set"' },
  ],
  [
    "that does nothing",
    ["files.file.create", {}],
    { rule: "hook-empty", message: "it does nothing", fix: "pass before, commit or after, each a function" },
  ],
  ["without options", ["files.file.create"], { rule: "hook-empty" }],
  [
    "of another moment",
    ["files.file.create", { before: run, around: run }],
    { rule: "unknown-option", message: 'unknown option "around"', fix: "known are before, commit, after" },
  ],
  [
    "of no functions",
    ["files.file.create", { before: 1, commit: [], after: {} }],
    { ...noFunction("before"), fix: "pass async (ctx, input) => ..." },
    noFunction("commit"),
    noFunction("after"),
  ],
  ["called by a number", [7, { after: run }], { key: "hook 7", rule: "hook-undeclared" }],
])("a hook %s", (_, given, ...problems) => {
  const found = problemsOf(hooking("other", (hook) => hook(...given)));

  expect(found).toEqual(problems.map((problem) => expect.objectContaining(problem)));
});

test("hooks stand in the registry by their write, in the order of the features", () => {
  const one = hooking("one", (hook) => {
    hook("files.file.create", { before: run });
    hook("files.file.create", { after: run });
  });
  const two = hooking("two", (hook) => hook("files.file.create", { commit: run }));
  const { hooks } = createRegistry([two, files, one]);

  expect([...hooks.keys()]).toEqual(["files.file.create"]);
  expect(hooks.get("files.file.create")?.map(({ feature }) => feature)).toEqual(["two", "one", "one"]);
  expect(createRegistry([files]).hooks.size).toBe(0);
});
