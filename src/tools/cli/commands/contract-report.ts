import type { Broken, Change } from "../../contract/schema-changes.ts";
import type { StoredReport } from "../../contract/stored-report.ts";
import { oneLine } from "../setup/define-command.ts";

export interface Checked {
  readonly changes: readonly Change[];
  /** Whether `contract write` would change the lock file. */
  readonly isStale: boolean;
  readonly unsaid: readonly { readonly where: string; readonly why: string }[];
  readonly stored: StoredReport | undefined;
}

export function reportJson({ changes, isStale, unsaid, stored }: Checked): readonly [string] {
  const { rows, counts, unlisted, unopened, stored: listed = [] } = stored ?? {};
  const document = {
    changes: changes.map(({ breaks, where, rule }) => ({ breaks, where, rule })),
    stored: listed,
    ...{ counts, rows, unlisted, unopened },
    stale: isStale,
    unsaid: unsaid.map(({ where, why }) => ({ where, why })),
  };
  return [JSON.stringify(document, undefined, 2)];
}

export function reportLines(
  { changes, isStale, stored }: Checked,
  write: string,
): readonly string[] {
  const lineOf = ({ where, rule, detail }: Change) =>
    `  ${oneLine(where)}: ${rule}${detail === undefined ? "" : ` (${shown(detail)})`}`;
  const groups = groupsOf(changes).flatMap(({ title, advice, members }) => [
    `${title}:`,
    ...members.map(lineOf),
    ...(advice === undefined ? [] : [`  To keep it: ${advice}.`]),
    "",
  ]);
  const rows = stored === undefined ? [] : [...storedTexts(stored), ""];
  return [...groups, ...rows, summaryOf(changes, isStale, write)];
}

export function reportMarkdown(
  { changes, isStale, unsaid, stored }: Checked,
  write: string,
): readonly string[] {
  const rowOf = ({ where, rule, detail = "" }: Change) =>
    `| ${code(where)} | ${code(rule)} | ${detail === "" ? "" : code(shown(detail))} |`;
  const list = (title: string, items: readonly string[]) =>
    items.length === 0 ? [] : [`### ${title}`, "", ...items.map((item) => `- ${item}`), ""];
  const unseen = unsaid.map(({ where, why }) => `${code(where)}: ${code(why)}`);
  return [
    ...["## Contract", ""],
    ...groupsOf(changes).flatMap(({ title, advice, members }) => [
      ...[`### ${title}`, "", "| Where | Rule | Change |", "|---|---|---|"],
      ...[...members.map(rowOf), ""],
      ...(advice === undefined ? [] : [`To keep it: ${advice}.`, ""]),
    ]),
    ...list("Stored settings", stored === undefined ? [] : storedTexts(stored).map(code)),
    ...list("Not described, so that changes are not seen", unseen),
    summaryOf(changes, isStale, code(write)),
  ];
}

const groups: readonly (readonly [Broken | undefined, title: string, advice?: string])[] = [
  ["client", "Breaks clients", "add a route or an optional property and keep the old one"],
  [
    "consumer",
    "Breaks consumers",
    "declare another event or job, and remove the old one once all its messages are processed",
  ],
  [
    "row",
    "Breaks stored settings",
    "see with --stored which rows it is; a renamed key says its old name as `formerly`",
  ],
  [undefined, "Breaks nobody"],
];

function groupsOf(changes: readonly Change[]) {
  const byBroken = Map.groupBy(changes, ({ breaks }) => breaks);
  return groups.flatMap(([breaks, title, advice]) => {
    const members = byBroken.get(breaks);
    return members === undefined ? [] : [{ title, advice, members }];
  });
}

function storedTexts(report: StoredReport) {
  const { stored, rows, unlisted, unopened } = report;
  const { clamped, fallback, ignored } = report.counts;
  return [
    `${rows} stored values: ${clamped} clamped, ${fallback} fall back, ${ignored} ignored`,
    ...stored.map(({ key, scope, tenantId, verdict, reads }) => {
      const of = tenantId === null ? "" : ` of ${oneLine(tenantId)}`;
      return `${oneLine(key)}, ${scope}${of}: ${verdict}, reads ${shown(JSON.stringify(reads))}`;
    }),
    unlisted > 0 && `${unlisted} more are counted and not listed`,
    unopened > 0 && `${unopened} secrets could not be decrypted, so their values were not checked`,
  ].filter((text) => text !== false);
}

function summaryOf(changes: readonly Change[], isStale: boolean, write: string) {
  const breaking = changes.filter(({ breaks }) => breaks !== undefined).length;
  const change = breaking === 1 ? "1 change breaks" : `${breaking} changes break`;
  if (breaking > 0) return `${change} the contract. To release anyway: ${write}`;
  return isStale
    ? `No change breaks the contract. The lock is older than the declarations: ${write}`
    : "Nothing has changed.";
}

function shown(text: string) {
  const line = oneLine(text);
  return line.length > 160 ? `${line.slice(0, 157)}...` : line;
}

function code(text: string) {
  return `\`${oneLine(text).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
}
