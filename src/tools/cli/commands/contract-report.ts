import type { Broken, Change } from "../../contract/schema-changes.ts";
import type { StoredReport } from "../../contract/stored-report.ts";
import { oneLine } from "../setup/one-line.ts";

export interface Checked {
  readonly changes: readonly Change[];
  /** Whether the lock differs from the output of `write`. */
  readonly isStale: boolean;
  readonly unsaid: readonly { readonly where: string; readonly why: string }[];
  readonly stored: StoredReport | undefined;
}

export function reportJson({ changes, isStale, unsaid, stored }: Checked): string {
  const document = {
    changes: changes.map(({ breaks, where, rule }) => ({
      ...(breaks === undefined ? {} : { breaks }),
      where,
      rule,
    })),
    stored: stored?.stored ?? [],
    ...(stored === undefined
      ? {}
      : {
          counts: stored.counts,
          rows: stored.rows,
          unlisted: stored.unlisted,
          unopened: stored.unopened,
        }),
    stale: isStale,
    unsaid: unsaid.map(({ where, why }) => ({ where, why })),
  };
  return JSON.stringify(document, undefined, 2);
}

export function reportLines(
  { changes, isStale, stored }: Checked,
  write: string,
): readonly string[] {
  const groups = groupsOf(changes).flatMap(({ title, advice, members }) => [
    `${title}:`,
    ...members.map(
      ({ where, rule, detail }) =>
        `  ${oneLine(where)}: ${rule}${detail === undefined ? "" : ` (${shown(detail)})`}`,
    ),
    ...(advice === undefined ? [] : [`  To keep it: ${advice}.`]),
    "",
  ]);
  const rows = stored === undefined ? [] : [...storedTexts(stored), ""];
  return [...groups, ...rows, ...summaryOf(changes, isStale, write)];
}

export function reportMarkdown(
  { changes, isStale, unsaid, stored }: Checked,
  write: string,
): readonly string[] {
  const groups = groupsOf(changes).flatMap(({ title, advice, members }) => [
    `### ${title}`,
    "",
    "| Where | Rule | Change |",
    "|---|---|---|",
    ...members.map(
      ({ where, rule, detail = "" }) =>
        `| ${code(where)} | ${code(rule)} | ${detail === "" ? "" : code(shown(detail))} |`,
    ),
    "",
    ...(advice === undefined ? [] : [`To keep it: ${advice}.`, ""]),
  ]);
  const rows =
    stored === undefined
      ? []
      : ["### Stored settings", "", ...storedTexts(stored).map((line) => `- ${code(line)}`), ""];
  const unseen = unsaid.map(({ where, why }) => `- ${code(where)}: ${code(why)}`);
  return [
    "## Contract",
    "",
    ...groups,
    ...rows,
    ...(unseen.length === 0
      ? []
      : ["### Not described, so that changes are not seen", "", ...unseen, ""]),
    ...summaryOf(changes, isStale, code(write)),
  ];
}

interface Group {
  readonly title: string;
  readonly advice: string | undefined;
  readonly members: readonly Change[];
}

const groupTexts: readonly (readonly [Broken | undefined, string, string | undefined])[] = [
  ["client", "Breaks clients", "add a route or an optional property beside the old one"],
  [
    "consumer",
    "Breaks consumers",
    "declare an event or a job beside it, and remove the old one once no message of it is left",
  ],
  [
    "row",
    "Breaks stored settings",
    "see with --stored which rows it is; a renamed key says its old name as `formerly`",
  ],
  [undefined, "Breaks nobody", undefined],
];

function groupsOf(changes: readonly Change[]): readonly Group[] {
  return groupTexts
    .map(([broken, title, advice]) => ({
      title,
      advice,
      members: changes.filter(({ breaks }) => breaks === broken),
    }))
    .filter(({ members }) => members.length > 0);
}

function storedTexts({
  stored,
  counts,
  rows,
  unlisted,
  unopened,
}: StoredReport): readonly string[] {
  const { clamped, fallback, ignored } = counts;
  return [
    `${rows} stored values: ${clamped} clamped, ${fallback} fall back, ${ignored} ignored`,
    ...stored.map(
      ({ key, scope, tenantId, verdict, reads }) =>
        `${oneLine(key)}, ${scope}${tenantId === null ? "" : ` of ${oneLine(tenantId)}`}: ${verdict}, reads ${shown(JSON.stringify(reads))}`,
    ),
    ...(unlisted > 0 ? [`${unlisted} more are counted and not listed`] : []),
    ...(unopened > 0
      ? [`${unopened} secrets could not be opened, so nobody knows whether they fit`]
      : []),
  ];
}

function summaryOf(changes: readonly Change[], isStale: boolean, write: string): readonly string[] {
  const breaking = changes.filter(({ breaks }) => breaks !== undefined).length;
  if (breaking > 0) {
    const change = breaking === 1 ? "1 change breaks" : `${breaking} changes break`;
    return [`${change} somebody. To release it all the same: ${write}`];
  }
  if (isStale) return [`Nothing breaks. The lock is older than the declarations: ${write}`];
  return ["Nothing has changed."];
}

function shown(text: string): string {
  const line = oneLine(text);
  return line.length > 160 ? `${line.slice(0, 157)}...` : line;
}

/** Safe inside a table of Markdown. */
function code(text: string): string {
  return `\`${oneLine(text).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
}
