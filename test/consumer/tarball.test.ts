import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createProject } from "./support/project.ts";

let root: string;
let files: readonly string[];
const textOf = (file: string) => readFileSync(join(root, file), "utf8");
beforeAll(async () => {
  const { directory } = await createProject({ name: "tarball", files: {} });
  root = join(directory, "node_modules/keelson");
  files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(root.length + 1)
        .replaceAll("\\", "/"),
    )
    .filter((file) => !file.startsWith("node_modules/"));
});

test("the package has the README, the licence, the changelog and all guides, and no tests", () => {
  const guides = globSync("docs/**/*.md", { cwd: join(import.meta.dirname, "../..") })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file !== "docs/decisions.md"); // for who changes keelson

  expect(files).toEqual(
    expect.arrayContaining(["README.md", "LICENSE", "CHANGELOG.md", "dist/index.js", ...guides]),
  );
  // The starter is a project with tests of its own.
  expect(
    files.filter(
      (file) =>
        !file.startsWith("examples/starter/") &&
        /\.test\.|-contract\.|^(src|test|scripts|bench)\//.test(file),
    ),
  ).toEqual([]);
});

test("every relative link of a document in the package leads to a packaged file", () => {
  const links = files
    .filter((file) => file.endsWith(".md"))
    .flatMap((file) =>
      [...textOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => ({
        file,
        target: target.replace(/#.*$/, ""),
      })),
    )
    .filter(({ target }) => target !== "" && !/^[a-z]+:/.test(target));

  expect(links.length).toBeGreaterThan(50);
  expect(
    links.filter(({ file, target }) => !existsSync(join(root, dirname(file), target))),
  ).toEqual([]);
});

test("every path in package.json exists", () => {
  const { exports, bin } = JSON.parse(textOf("package.json"));
  const named = [...Object.values(exports), bin].flatMap((entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry),
  );

  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((path) => !files.includes(String(path).replace("./", "")))).toEqual([]);
});

test("doc comments name only packaged documents, and sections that the specification page explains", () => {
  const texts = files.filter((file) => /^dist\/.*\.(d\.ts|js)$/.test(file)).map(textOf);
  const named = texts.flatMap((text) => text.match(/(?<![\w./])[\w/-]+\.md\b/g) ?? []);
  const sections = texts.flatMap((text) =>
    [...text.matchAll(/specification (\d+(?:\.\d+)?)(?: and (\d+\.\d+))?/g)].flatMap(
      ([, ...numbers]) => numbers,
    ),
  );
  const explained = [...textOf("docs/specification.md").matchAll(/^\| ([\d.]+) \|/gm)].map(
    ([, section]) => section,
  );

  expect(named.filter((file) => !files.includes(file))).toEqual([]);
  expect(sections.length).toBeGreaterThan(30);
  expect(
    [...new Set(sections)].filter(
      (section) => section !== undefined && !explained.includes(section),
    ),
  ).toEqual([]);
  expect(texts.filter((text) => /field[- ]notes|\bthe design\b/i.test(text))).toEqual([]);
});
