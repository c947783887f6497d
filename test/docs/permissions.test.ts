import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, textOf } from "./markdown.ts";

test("the table of permissions has each statement of a function's role", () => {
  const source = readFileSync(join(root, "src/tools/infra/statements.ts"), "utf8");
  const [ofFunctions = ""] = source.split("export function tenantStatements");
  const statement = /"([A-Z]\w+)",\s*(?:dynamodb\(|\[|reading|checking|writing)/g;
  const sids = [...ofFunctions.matchAll(statement)].map(([, sid = ""]) => sid);
  expect(sids.length).toBeGreaterThan(20);

  const [, section = ""] = textOf("docs/infra.md").split("\n## Permissions\n");
  const rows = [...section.matchAll(/^\| (`[^|]*) \|/gm)].map(([, cell]) => cell).join();
  expect(sids.filter((sid) => !rows.includes(`\`${sid}\``))).toEqual([]);
});
