import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { codeBlocks, root, textOf } from "./markdown.ts";

const page = "docs/doctor.md";

test("docs/doctor.md allows the operations that the command calls, and no other", () => {
  const [policy] = codeBlocks(page, textOf(page)).filter(({ code }) => code.includes("Statement"));
  // Safe cast: the page has one policy, in this form.
  const { Statement } = JSON.parse(policy?.code ?? "") as {
    readonly Statement: readonly [{ readonly Action: readonly string[] }];
  };
  const called = globSync("src/tools/cli/doctor/*.ts", { cwd: root, exclude: ["**/*.test.ts"] })
    .map((file) => textOf(file))
    .flatMap((text) => [...text.matchAll(/new (\w+)Command\(|\bcall\("(\w+)"/g)])
    .map(([, command, operation]) => command ?? operation);

  // AWS checks these two itself: for a SecureString, and for the tag of a session.
  expect(Statement[0].Action.map((action) => action.split(":")[1]).sort()).toEqual(
    [...new Set(called), "Decrypt", "TagSession"].sort(),
  );
  expect(called.length).toBeGreaterThan(10);
});
