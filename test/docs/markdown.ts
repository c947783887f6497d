import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { anchorsIn } from "../../scripts/heading-anchors.ts";

/** The root of the repository. */
export const root = join(import.meta.dirname, "../..");

/** The documents whose blocks, tables and links are checked, relative to the root. */
export const documents: readonly string[] = [
  "README.md",
  "AGENTS.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ".github/PULL_REQUEST_TEMPLATE.md",
  ...globSync("docs/**/*.md", { cwd: root }).map((path) => path.replaceAll("\\", "/")),
].sort();

/** The pages of the tutorial in their order. Their blocks are the steps of one project, which `test/consumer` follows. */
export const tutorialPages: readonly string[] = [
  "docs/tutorial.md",
  "docs/tutorial-events.md",
  "docs/tutorial-settings.md",
  "docs/tutorial-deploy.md",
];

/** A fenced block of a document. */
export interface CodeBlock {
  readonly document: string;
  /** The line of the document at which the code starts. */
  readonly line: number;
  /** The language after the fence; `""` without one. */
  readonly language: string;
  readonly code: string;
  /** The text of the heading above it. */
  readonly heading: string;
}

/** The text of a document. */
export function textOf(document: string): string {
  return readFileSync(join(root, document), "utf8");
}

/** The fenced blocks of all documents but the tutorial. */
export function allBlocks(): CodeBlock[] {
  return documents
    .filter((document) => !tutorialPages.includes(document))
    .flatMap((document) => codeBlocks(document, textOf(document)));
}

/**
 * The fenced blocks of a page.
 *
 * @throws Error if a fence is not closed, because the rest of the page would not be checked.
 */
export function codeBlocks(document: string, text: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let heading = "";
  let open:
    | {
        readonly fence: string;
        readonly line: number;
        readonly language: string;
        readonly lines: string[];
      }
    | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const [, fence, language = ""] = /^ *(`{3,}|~{3,}) *(\S*)/.exec(line) ?? [];
    if (open !== undefined) {
      if (line.trim() === open.fence) {
        blocks.push({
          document,
          heading,
          line: open.line,
          language: open.language,
          code: open.lines.join("\n"),
        });
        open = undefined;
      } else open.lines.push(line);
    } else if (fence !== undefined) open = { fence, line: index + 2, language, lines: [] };
    else heading = /^#+ +(.*)/.exec(line)?.[1] ?? heading;
  }
  if (open !== undefined) throw new Error(`${document}:${open.line}: the block is not closed`);
  return blocks;
}

/** The anchors of a document's headings, as GitHub makes them. */
export function headingAnchors(document: string): string[] {
  return anchorsIn(textOf(document));
}

/** The place of a block, for messages. */
export function placeOf({ document, line }: Pick<CodeBlock, "document" | "line">): string {
  return `${document}:${line}`;
}

/** The rows of the table under a heading, each as its cells; the code marks around a cell are taken off. */
export function tableUnder(document: string, heading: string): string[][] {
  const lines = textOf(document).split("\n");
  const start = lines.findIndex(
    (line) => /^#+ +/.test(line) && line.replace(/^#+ +/, "") === heading,
  );
  if (start === -1) throw new Error(`${document} has no heading ${JSON.stringify(heading)}`);
  const first = lines.findIndex((line, index) => index > start && line.startsWith("|"));
  const rows: string[][] = [];
  for (let index = first + 2; lines[index]?.startsWith("|"); index++) {
    rows.push(
      (lines[index] ?? "")
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim().replace(/^`([^`]*)`$/, "$1")),
    );
  }
  return rows;
}
