/** What runs: a write has an answer, which its repeats get too; a message comes again until it is done. */
export type RunKind = "write" | "message";

/** What the work came to. */
export type WorkEnd =
  /** It is done; where it has no answer that can be given, its answer says so. */
  | "answered"
  /** Its answer says that nothing was done (from 400 on), or is one that no repeat can get. */
  | "refused"
  | "threw"
  /** It threw once everybody who waited for it was gone. */
  | "stopped"
  /** It threw once its time was over: nobody knows how far it came. */
  | "timed out";

/** What its commit came to; "unknown" where nobody knows whether it was written. */
export type CommitEnd = "none" | "committed" | "unknown";

/** Whose the claim is. */
export type ClaimEnd =
  /** Nothing claims the run. */
  | "unclaimed"
  | "ours"
  /** Another owner was seen in our place. */
  | "lost"
  /** It was to be completed: it is, it was another's by then, or the store has failed. */
  | "completed"
  | "fenced"
  | "not noted"
  /** It was looked for once more: the other's answer is there, or nobody can say. */
  | "theirs"
  | "unclear";

/** What becomes of the record of the claim. */
type RecordStep =
  /** Nothing: it is completed already, another's, or its lease ends by itself. */
  | "leave"
  | "complete"
  | "release"
  /** It is taken once more, where another has let go of it meanwhile. */
  | "take again";

/** What whoever waits for the run gets, where nothing is left to do about the record. */
type Given =
  /** What the work came to: its answer or its error. */
  | "own"
  /** The answer that was committed, whatever came later. */
  | "committed"
  /** The answer of the other run. */
  | "theirs"
  /** The message comes again at once. */
  | "again"
  /** An error: what was done could not be noted, and may be done again. */
  | "not noted"
  /** Nothing yet. */
  | "";

/** The line that is logged: its level, and how its message ends. */
type Line = "" | "error threw_after_commit" | "error commit_uncertain" | "error completion_failed" | "warn fenced" | "warn lost";

/** How a run goes on after its work. */
export interface Settlement {
  readonly record: RecordStep;
  readonly given: Given;
  readonly line: { readonly level: "warn" | "error"; readonly message: string } | undefined;
}

type Row = readonly [run: string, work: string, commit: string, claim: string, RecordStep, Given, Line];

const failed = "threw|stopped|timed out";
const held = "ours|lost";

/** How every run ends: the first row that fits. A cell names what it takes, and `*` everything. */
const table: readonly Row[] = [
  // run       work                 commit          claim         record        given        line
  ["*", failed, "committed", `unclaimed|${held}`, "leave", "committed", "error threw_after_commit"],
  ["*", "*", "committed", `unclaimed|${held}`, "leave", "committed", ""],
  ["*", "*", "*", "unclaimed", "leave", "own", ""],

  ["write", "*", "unknown", held, "leave", "own", "error commit_uncertain"],
  ["write", "timed out", "none", held, "leave", "own", ""],
  ["write", "threw", "none", "lost", "take again", "", ""],
  ["write", `refused|${failed}`, "none", held, "release", "own", ""],
  ["message", failed, "unknown", held, "leave", "own", ""],
  ["message", failed, "none", "lost", "leave", "own", ""],
  ["message", `refused|${failed}`, "none", "ours", "release", "own", ""],
  ["*", "*", "*", held, "complete", "", ""],

  ["*", "*", "*", "completed", "leave", "own", ""],
  ["write", "*", "*", "fenced", "take again", "", "warn fenced"],
  ["message", "*", "*", "fenced", "leave", "again", "warn fenced"],
  ["write", "*", "*", "not noted", "leave", "own", "error completion_failed"],
  ["message", "*", "*", "not noted", "leave", "not noted", ""],

  ["*", "*", "*", "theirs", "leave", "theirs", ""],
  ["*", "*", "*", "unclear", "leave", "own", "warn lost"],
];

const rows = table.map(([run, work, commit, claim, record, given, line]) => {
  const [level, message] = line.split(" ") as ["warn" | "error", string]; // safe: as every `Line` that is one
  const settlement: Settlement = { record, given, line: line === "" ? undefined : { level, message } };
  return { cells: [run, work, commit, claim].map((cell) => (cell === "*" ? undefined : cell.split("|"))), settlement };
});
/** By what was looked for before: each run looks twice, and there are few that differ. */
const found = new Map<string, Settlement>();

/** What becomes of a run, by what it is, what it did, and whose its claim is. */
export function settlementOf(run: RunKind, work: WorkEnd, commit: CommitEnd, claim: ClaimEnd): Settlement {
  const facts = `${run} ${work} ${commit} ${claim}`;
  const known = found.get(facts);
  if (known !== undefined) return known;
  const values = [run, work, commit, claim];
  // Safe: of each claim a row takes whatever else there is.
  const row = rows.find(({ cells }) => cells.every((cell, index) => cell?.includes(values[index] as string) ?? true));
  const { settlement } = row as (typeof rows)[number];
  found.set(facts, settlement);
  return settlement;
}
