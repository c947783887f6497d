import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "./markdown.ts";

interface Part {
  readonly type: string;
  readonly id?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}
interface Form {
  readonly name: string;
  readonly description: string;
  readonly body: readonly Part[];
}

const folder = ".github/ISSUE_TEMPLATE";
const forms = globSync(`${folder}/*.yml`, { cwd: root })
  .filter((path) => !path.endsWith("config.yml"))
  .map((path) => parse(readFileSync(join(root, path), "utf8")) as Form); // as the test looks at it

test("there are forms for bugs and features that GitHub accepts, and no issue without a form", () => {
  expect(forms.map(({ name }) => name).sort()).toEqual(["Bug", "Feature"]);
  for (const { description, body } of forms) {
    expect(description).not.toBe("");
    const asked = body.filter(({ type }) => type !== "markdown");
    expect(
      body.filter(({ type }) => !["markdown", "textarea", "input", "dropdown"].includes(type)),
    ).toEqual([]);
    expect(
      asked.filter(
        ({ id, attributes }) =>
          !/^[a-z-]+$/.test(id ?? "") || typeof attributes["label"] !== "string",
      ),
    ).toEqual([]);
    expect(new Set(asked.map(({ id }) => id)).size).toBe(asked.length);
  }
  expect(parse(readFileSync(join(root, folder, "config.yml"), "utf8"))).toEqual({
    blank_issues_enabled: false,
  });
});

test("vulnerabilities are reported privately: the policy links to GitHub's advisories, and names no address", () => {
  const policy = readFileSync(join(root, "SECURITY.md"), "utf8");

  expect(policy).toContain("Report a vulnerability");
  expect(policy).not.toMatch(/[\w.]+@[\w.]+|mailto:/);
});
