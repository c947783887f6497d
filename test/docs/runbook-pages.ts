import { globSync } from "node:fs";
import { basename } from "node:path";
import { type CodeBlock, codeBlocks, root, textOf } from "./markdown.ts";

/** Headings that each page of the runbook has, in this order. */
export const headings = [
  "What it means",
  "Confirm it",
  "Decide",
  "Fix it",
  "Verify the fix",
] as const;

export interface RunbookPage {
  /** Its file without `.md`: `late-events`. */
  readonly name: string;
  readonly document: string;
  readonly text: string;
  /** Alarms that lead to it. */
  readonly alarms: readonly string[];
  readonly blocks: readonly CodeBlock[];
}

export const runbookPages: readonly RunbookPage[] = globSync("docs/runbook/*.md", { cwd: root })
  .map((path) => path.replaceAll("\\", "/"))
  .sort()
  .map((document) => {
    const text = textOf(document);
    return {
      name: basename(document, ".md"),
      document,
      text,
      alarms: alarmsIn(text),
      blocks: codeBlocks(document, text),
    };
  });

/** Logs Insights queries of a page, in order. */
export function queriesOf({ blocks }: Pick<RunbookPage, "blocks">): readonly CodeBlock[] {
  return blocks.filter(({ code }) => /^(?:fields|filter|stats) /.test(code));
}

function alarmsIn(text: string): readonly string[] {
  const [, listed = ""] = /^\*\*Alarms\*\*: ([^.]*)\./m.exec(text) ?? [];
  return [...listed.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
}
