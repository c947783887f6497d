import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { kinds } from "../../src/app/features/feature.ts";
import { BootError } from "../../src/base/errors/boot.ts";
import type { BootRule } from "../../src/base/errors/boot-rule.ts";
import { buildServer, defineFeature } from "../../src/index.ts";
import { root, textOf } from "./markdown.ts";

const page = "docs/boot-problems.md";
const list = "src/base/errors/boot-rule.ts";

/**
 * Every rule: the members of the type `BootRule`. A problem with another rule does not compile,
 * because each function that reports problems takes a `BootRule`.
 */
const rules = [...textOf(list).matchAll(/^ {2}\| "([^"]+)"/gm)].map(([, rule]) => rule as BootRule);

const headings = [...textOf(page).matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);

test("the page explains every rule under its name, in alphabetical order", () => {
  expect(rules.length).toBeGreaterThan(100);
  expect(headings).toEqual(rules.toSorted());
});

test("every rule has a text of its own", () => {
  const [, ...sections] = textOf(page).split(/^## /m);
  const short = sections.filter((section) => (section.split("\n")[2] ?? "").length < 40);

  expect(short).toEqual([]);
});

test("the sources report every rule of the list", () => {
  const composed = [
    ...["feature", ...Object.values(kinds).map(([what]) => what)].map(
      (what) => `duplicate-${what}`,
    ),
    ...["access", "body", "limits"].map((option) => `${option}-without-route`),
  ];
  const sources = globSync("src/**/*.ts", { cwd: root, exclude: ["**/*.test.ts"] })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path !== list)
    .map((path) => readFileSync(join(root, path), "utf8"))
    .join("\n");

  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: as the sources have them
  expect(sources).toContain("rule: `duplicate-${what}`");
  expect(sources).toContain("problem(`${option}-without-route`");
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: as above
  // As a value: `rule: "errors"`, `problem("errors", …)`, `report(…, "errors", …)`, or a line of its own.
  const literals = sources.matchAll(/(?:rule: |\(|, |^ +)"([a-z-]+)"/gm);
  const reported = new Set([...composed, ...[...literals].map(([, literal]) => literal)]);
  expect(rules.filter((rule) => !reported.has(rule))).toEqual([]);
});

test("the text of a boot error leads to the headings, from where the mistake is", () => {
  const wrong = defineFeature("wrong", (r) => void r.query("list", { handler: async () => [] }));
  const failure = () => {
    try {
      buildServer({ features: [wrong], basePath: "api" });
    } catch (error) {
      if (error instanceof BootError) return error;
    }
    throw new Error("it is built");
  };
  const { message, problems } = failure();
  const [first = "", ...lines] = message.split("\n");

  expect(first).toBe("2 problems at boot");
  expect(lines).toHaveLength(problems.length);
  for (const line of lines) {
    const [, place, link, rule] = / \((\S+:\d+), (\S+)#(\S+)\)$/.exec(line) ?? [];
    expect(place).toMatch(/^test\/docs\/boot-problems\.test\.ts:\d+$/);
    expect(link).toBe(page);
    expect(headings).toContain(rule);
  }
});

test("the package has the page", () => {
  const { files } = JSON.parse(textOf("package.json")) as { readonly files: readonly string[] };

  expect(files).toContain("docs");
  expect(files).not.toContain(`!${page}`);
});
