import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const script = join(import.meta.dirname, "../../scripts/layers.mjs");
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "keelson-layers-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** Checks a tree of files, against a plan of its folders from the top to the bottom and its exceptions. */
function check(
  files: Readonly<Record<string, string>>,
  folders: readonly string[],
  exceptions: Readonly<Record<string, unknown>> = {},
) {
  for (const [name, text] of Object.entries(files)) {
    const path = join(root, "src", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  const plan = join(root, "plan.mjs");
  const exported = Object.entries({ folders, ...exceptions }).map(
    ([name, value]) => `export const ${name} = ${JSON.stringify(value)};`,
  );
  writeFileSync(plan, exported.join("\n"));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [script, join(root, "src"), plan],
    { encoding: "utf8" },
  );
  return { status, stderr, lines: stdout.trim().split("\n") };
}

test("imports down the plan and within a folder are accepted", () => {
  const files = {
    "index.ts": 'export { a } from "./top/a.ts";',
    "top/a.ts": 'import { b } from "./b.ts";\nexport const a = b;',
    "top/b.ts":
      'import { c } from "../bottom/read/c.ts";\nimport { join } from "node:path";\nexport const b = join(c);',
    "bottom/read/c.ts": 'import type { D } from "../d.ts";\nexport const c: D = "c";',
    "bottom/d.ts": "export type D = string;",
  };

  expect(check(files, [".", "top", "bottom/read", "bottom"])).toEqual({
    status: 0,
    stderr: "",
    lines: ["layers: clean"],
  });
});

test("a circle of files is named once, with each file's imports, and types count", () => {
  const files = {
    "a/one.ts":
      'import { two, type Two } from "./two.ts";\nexport interface One { two: Two }\nexport const one = two;',
    "a/two.ts":
      'import * as all from "./three.ts";\nexport type Two = string;\nexport const two = all;',
    "a/three.ts": 'import type { One } from "./one.ts";\nexport type Three = One;',
  };

  const { status, lines } = check(files, ["a"]);

  expect(status).toBe(1);
  expect(lines).toEqual([
    "circle of 3 files",
    "  a/one.ts -> a/two.ts: two, type Two",
    "  a/two.ts -> a/three.ts: *",
    "  a/three.ts -> a/one.ts: type One",
    "layers: 1 finding",
  ]);
});

test.each([
  ["an import()", 'export const b = () => import("./a.ts");', "import()"],
  ["the type of an import()", 'export type B = import("./a.ts").A;', "type A"],
  ["a star that is exported again", 'export * from "./a.ts";', "*"],
  ["a name that is exported again", 'export { a as b } from "./a.ts";', "a"],
  ["a type that is exported again", 'export { type A as B } from "./a.ts";', "type A"],
  ["an import for its effects", 'import "./a.ts";', "nothing"],
])("%s closes a circle", (_what, text, names) => {
  const files = {
    "x/a.ts": 'import "./b.ts";\nexport const a = 1;\nexport type A = 1;',
    "x/b.ts": text,
  };

  expect(check(files, ["x"]).lines).toContain(`  x/b.ts -> x/a.ts: ${names}`);
});

test("two circles that share a file are reported separately", () => {
  const files = {
    "x/a.ts": 'import "./b.ts";\nimport "./c.ts";',
    "x/b.ts": 'import "./a.ts";',
    "x/c.ts": 'import "./a.ts";',
  };

  expect(check(files, ["x"]).lines.filter((line) => line.startsWith("circle"))).toHaveLength(2);
});

test("a file that imports itself is a circle of one file", () => {
  expect(
    check({ "x/a.ts": 'import type { A } from "./a.ts";\nexport type { A };' }, ["x"]).lines,
  ).toContain("circle of 1 file");
});

test("two folders that import each other are reported with both directions, even without a circle of files", () => {
  const files = {
    "up/a.ts": 'import { b } from "../down/b.ts";\nexport const a = b;',
    "up/c.ts": "export type C = 1;",
    "down/b.ts": "export const b = 1;",
    "down/d.ts": 'import type { C } from "../up/c.ts";\nexport type D = C;',
  };

  const { status, lines } = check(files, ["up", "down"]);

  expect(status).toBe(1);
  expect(lines).toEqual([
    "down <-> up: 1 there, 1 back",
    "  down/d.ts -> up/c.ts: type C",
    "  up/a.ts -> down/b.ts: b",
    "down -> up goes up",
    "  down/d.ts -> up/c.ts: type C",
    "layers: 2 findings",
  ]);
});

test("a nested folder has its own place in the plan", () => {
  const files = {
    "config/read/a.ts": 'import { b } from "../b.ts";',
    "config/b.ts": "export const b = 1;",
  };

  expect(check(files, ["config/read", "config"]).status).toBe(0);
  expect(check(files, ["config", "config/read"]).lines).toEqual([
    "config/read -> config goes up",
    "  config/read/a.ts -> config/b.ts: b",
    "layers: 1 finding",
  ]);
});

test("a folder missing from the plan, and one listed without files or twice, are findings", () => {
  const { status, lines } = check({ "new/a.ts": "export const a = 1;", "kept/b.ts": "" }, [
    "kept",
    "gone",
    "kept",
  ]);

  expect(status).toBe(1);
  expect(lines).toEqual([
    "new is not in the plan",
    "gone is in the plan, and has no files",
    "kept is in the plan twice",
    "layers: 3 findings",
  ]);
});

test("tests may import anything", () => {
  const files = {
    "up/a.ts": "export const a = 1;",
    "down/b.ts": "export const b = 1;",
    "down/b.test.ts": 'import { a } from "../up/a.ts";',
  };

  expect(check(files, ["up", "down"]).lines).toEqual(["layers: clean"]);
});

test.each([
  ["a name", "export const b = (name: string) => import(name);"],
  ["a template", "export const b = () => import(`./a.ts`);"],
  ["a sum", 'export const b = () => import("./" + "a.ts");'],
])("an import() of %s is refused, unless the plan has an exception", (_what, text) => {
  const files = { "x/a.ts": "", "x/b.ts": text };

  expect(check(files, ["x"])).toEqual({
    status: 1,
    stderr: "",
    lines: ["x/b.ts computes the name of an import; use a literal", "layers: 1 finding"],
  });
  expect(check(files, ["x"], { computedImports: { "x/b.ts": "a plugin" } }).lines).toEqual([
    "layers: clean",
  ]);
});

test("an exception for a computed import is a finding once the import is gone", () => {
  const files = { "x/a.ts": 'export const a = () => import("node:path");' };

  expect(check(files, ["x"], { computedImports: { "x/a.ts": "a plugin" } }).lines).toEqual([
    "x/a.ts may compute the name of an import, but does not; delete its exception",
    "layers: 1 finding",
  ]);
});

describe("a guarded value", () => {
  const readers = {
    "low/store.ts": { names: ["store"], allowed: { "top/one.ts": "has no other way" } },
  };
  const store = "export const store = 1;\nexport const run = 1;\nexport type Store = 1;";
  const one = 'import { store } from "../low/store.ts";';
  const checked = (other: string, first = one) =>
    check({ "low/store.ts": store, "top/one.ts": first, "top/two.ts": other }, ["top", "low"], {
      readers,
    }).lines;

  test.each([
    ["imports it", one, "store"],
    ["renames it", 'import { store as other } from "../low/store.ts";', "store"],
    ["exports it again", 'export { store } from "../low/store.ts";', "store"],
    ["exports everything again", 'export * from "../low/store.ts";', "*"],
    ["imports everything", 'import * as all from "../low/store.ts";', "*"],
    ["loads it", 'export const two = () => import("../low/store.ts");', "import()"],
  ])("is refused to an unlisted file that %s", (_what, text, names) => {
    expect(checked(text)).toEqual([
      "top/two.ts reads low/store.ts, which is for top/one.ts",
      `  top/two.ts -> low/store.ts: ${names}`,
      "layers: 1 finding",
    ]);
  });

  test("does not restrict the types and the other values of its file", () => {
    expect(checked('import { run, type Store } from "../low/store.ts";')).toEqual([
      "layers: clean",
    ]);
  });

  test("may list only readers that read it", () => {
    expect(checked("", "")).toEqual([
      "top/one.ts may read low/store.ts, and does not; delete its exception",
      "layers: 1 finding",
    ]);
  });
});

describe("an environment variable with a file of its own", () => {
  const variables = { "low/place.ts": ["WHERE_IT_RUNS"] };
  const home = 'export const place = (env: Variables) => env["WHERE_IT_RUNS"];';
  const checked = (other: string, text = home) =>
    check({ "low/place.ts": text, "top/one.ts": other }, ["top", "low"], { variables }).lines;

  test.each([
    ["by its name", 'process.env["WHERE_IT_RUNS"];'],
    ["as a member", "process.env.WHERE_IT_RUNS;"],
    ["by destructuring", "const { WHERE_IT_RUNS: place } = process.env;"],
  ])("is not read %s elsewhere", (_what, text) => {
    expect(checked(text)).toEqual([
      "top/one.ts reads WHERE_IT_RUNS; ask low/place.ts",
      "layers: 1 finding",
    ]);
  });

  test("may be named in a message, and is read by its file", () => {
    expect(checked('throw new Error("WHERE_IT_RUNS is wrong");')).toEqual(["layers: clean"]);
    expect(checked("", "")).toEqual([
      "low/place.ts does not read WHERE_IT_RUNS; delete it from the plan",
      "layers: 1 finding",
    ]);
  });
});
