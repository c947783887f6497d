import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./markdown.ts";

const examples = join(root, "examples/invoicing");

/** Lines of code, without empty lines and comments. */
function linesOf(path: string): number {
  return readFileSync(join(examples, path), "utf8")
    .split("\n")
    .filter((line) => !/^\s*(?:$|\/\/|\/?\*)/.test(line)).length;
}

test("docs/adopt.md has the lines of code of the invoicing product, which are fewer with keelson's", () => {
  const text = readFileSync(join(root, "docs/adopt.md"), "utf8");
  const rows = [
    ...text.matchAll(/^\|[^|]+\| (\d+), `before\/(\S+)` \| (\d+), `after\/(\S+)` \|$/gm),
  ];

  const parts = rows.map(([, , name]) => name);
  expect(parts).toEqual(["keys.ts", "payments.ts", "invoices.ts"]);
  for (const [, by, before = "", withKeelson, after = ""] of rows) {
    const counted = [linesOf(`before/${before}`), linesOf(`after/${after}`)];
    expect([before, Number(by), Number(withKeelson)]).toEqual([before, ...counted]);
    expect(Number(withKeelson)).toBeLessThan(Number(by) / 2);
  }
});
