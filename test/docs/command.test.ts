import { expect, test } from "vitest";
import { commandGroups } from "../../src/tools/cli/command-table.ts";
import { textOf } from "./markdown.ts";

test("docs/command.md lists all commands, in the order and with the words of the help", () => {
  const rows = commandGroups.flatMap(({ commands }) =>
    Object.entries(commands).map(([name, [summary]]) => `| \`keelson ${name}\` | ${summary} |`),
  );
  const listed = textOf("docs/command.md").split("\n");
  expect(listed.filter((line) => line.startsWith("| `keelson "))).toEqual(rows);
});
