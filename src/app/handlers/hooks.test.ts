import { expect, test } from "vitest";
import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import { defineFeature } from "../features/feature.ts";
import { createRegistry } from "../registry/registry.ts";
import { buildServer } from "../server/server.ts";

/** Declares as plain JavaScript may. */
type Hook = (...given: readonly unknown[]) => void;

const run = async () => undefined;
const papers = defineFeature("papers", (r) => {
  r.write("file.create", { handler: run });
  r.query("file.list", { handler: run });
});
const hooking = (name: string, declare: (hook: Hook) => void) =>
  defineFeature(name, (r) => declare(r.hook as Hook)); // so that it may be called wrongly

/** What is wrong with a server that has these features and `papers`. */
function problemsOf(...features: readonly ReturnType<typeof hooking>[]): readonly BootProblem[] {
  try {
    buildServer({ features: [...features, papers] });
  } catch (error) {
    if (error instanceof BootError) return error.problems;
    throw error;
  }
  return [];
}

const noFunction = (moment: string) => ({
  rule: "handler" as const,
  message: `\`${moment}\` is not a function`,
});

test.each<[what: string, given: readonly unknown[], ...problems: Partial<BootProblem>[]]>([
  ["one of each moment", ["papers.file.create", { before: run, commit: run, after: run }]],
  ["one of one moment", ["papers.file.create", { after: run, before: undefined }]],
  [
    "on a write that nobody declares",
    ["papers.file.creat", { after: run }],
    {
      feature: "other",
      key: "hook papers.file.creat",
      rule: "hook-undeclared",
      message: 'no feature of this server declares the write "papers.file.creat"',
      fix: 'did you mean "papers.file.create"?',
    },
  ],
  [
    "on what resembles nothing",
    ["billing.invoice.send", { after: run }],
    { rule: "hook-undeclared", fix: "name a write, or add the feature that declares it" },
  ],
  [
    "on a query",
    ["papers.file.list", { after: run }],
    {
      key: "hook papers.file.list",
      rule: "hook-query",
      message: '"papers.file.list" is a query, and only writes have hooks',
      fix: "hook a write",
    },
  ],
  [
    "on keelson's own write",
    ["keelson.config.set", { after: run }],
    {
      rule: "hook-undeclared",
      message: 'no feature of this server declares the write "keelson.config.set"',
    },
  ],
  [
    "that does nothing",
    ["papers.file.create", {}],
    {
      rule: "hook-empty",
      message: "it does nothing",
      fix: "pass before, commit or after, each a function",
    },
  ],
  ["without options", ["papers.file.create"], { rule: "hook-empty" }],
  [
    "of another moment",
    ["papers.file.create", { before: run, around: run }],
    {
      rule: "unknown-option",
      message: 'unknown option "around"',
      fix: "known are before, commit, after",
    },
  ],
  [
    "of no functions",
    ["papers.file.create", { before: 1, commit: [], after: {} }],
    { ...noFunction("before"), fix: "pass async (ctx, input) => ..." },
    noFunction("commit"),
    noFunction("after"),
  ],
  ["called by a number", [7, { after: run }], { key: "hook 7", rule: "hook-undeclared" }],
])("a hook %s", (_, given, ...problems) => {
  const found = problemsOf(hooking("other", (hook) => hook(...given)));

  expect(found).toEqual(problems.map((problem) => expect.objectContaining(problem)));
});

test("the registry lists hooks by write, in the order of the features", () => {
  const one = hooking("one", (hook) => {
    hook("papers.file.create", { before: run });
    hook("papers.file.create", { after: run });
  });
  const two = hooking("two", (hook) => hook("papers.file.create", { commit: run }));
  const { hooks } = createRegistry([two, papers, one]);

  expect([...hooks.keys()]).toEqual(["papers.file.create"]);
  expect(hooks.get("papers.file.create")?.map(({ feature }) => feature)).toEqual([
    "two",
    "one",
    "one",
  ]);
  expect(createRegistry([papers]).hooks.size).toBe(0);
});
