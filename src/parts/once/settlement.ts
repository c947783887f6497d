/** A write has an answer, which its repeats get too; a message is redelivered until it is done. */
export type RunKind = "write" | "message";

/** How the work ended. */
export type WorkEnd =
  /** It is done. */
  | "answered"
  /** Its answer says that nothing was done (status 400 or above), or cannot be replayed. */
  | "refused"
  | "threw"
  /** It threw after every caller had gone. */
  | "stopped"
  /** It threw after its timeout: how far it got is unknown. */
  | "timed out";

/** How its commit ended; "unknown" if it may or may not have been written. */
export type CommitEnd = "none" | "committed" | "unknown";

/** Who holds the claim. */
export type ClaimEnd =
  /** The run has no claim. */
  | "unclaimed"
  | "ours"
  /** Another owner has taken it over. */
  | "lost"
  /** Completing it worked, found another owner, or failed in the store. */
  | "completed"
  | "fenced"
  | "unrecorded"
  /** Retaking it found the other run's answer, or failed. */
  | "theirs"
  | "unknown";

/** What is done with the record of the claim. */
type RecordStep =
  /** Nothing: it is completed, another's, or its lease runs out. */
  | "keep"
  | "complete"
  | "release"
  /** The claim is taken again, or the other run's answer found. */
  | "retake";

/** What the callers get, once the record is settled. */
type Outcome =
  /** The work's own answer or error. */
  | "own"
  /** The committed answer, whatever happened later. */
  | "committed"
  /** The other run's answer. */
  | "theirs"
  /** The message is redelivered at once. */
  | "redeliver"
  /** An error: the work is done, but could not be recorded and may run again. */
  | "unrecorded"
  /** Nothing yet: another row follows. */
  | "";

/** The line that is logged: its level, and the end of its message. */
type Line =
  | ""
  | "error threw_after_commit"
  | "error commit_uncertain"
  | "error completion_failed"
  | "warn fenced"
  | "warn lost";

/** What follows the work of a run. */
export interface Settlement {
  readonly record: RecordStep;
  readonly outcome: Outcome;
  readonly line: { readonly level: "warn" | "error"; readonly message: string } | undefined;
}

type Row = readonly [
  run: string,
  work: string,
  commit: string,
  claim: string,
  RecordStep,
  Outcome,
  Line,
];

const failed = "threw|stopped|timed out";
const held = "ours|lost";

/** How every run ends: the first row that matches. A cell lists what it matches; `*` matches everything. */
const table: readonly Row[] = [
  // run       work                 commit          claim         record      outcome       line
  ["*", failed, "committed", `unclaimed|${held}`, "keep", "committed", "error threw_after_commit"],
  ["*", "*", "committed", `unclaimed|${held}`, "keep", "committed", ""],
  ["*", "*", "*", "unclaimed", "keep", "own", ""],

  ["write", "*", "unknown", held, "keep", "own", "error commit_uncertain"],
  ["write", "timed out", "none", held, "keep", "own", ""],
  ["write", "threw", "none", "lost", "retake", "", ""],
  ["write", `refused|${failed}`, "none", held, "release", "own", ""],
  ["message", failed, "unknown", held, "keep", "own", ""],
  ["message", failed, "none", "lost", "keep", "own", ""],
  ["message", `refused|${failed}`, "none", "ours", "release", "own", ""],
  ["*", "*", "*", held, "complete", "", ""],

  ["*", "*", "*", "completed", "keep", "own", ""],
  ["write", "*", "*", "fenced", "retake", "", "warn fenced"],
  ["message", "*", "*", "fenced", "keep", "redeliver", "warn fenced"],
  ["write", "*", "*", "unrecorded", "keep", "own", "error completion_failed"],
  ["message", "*", "*", "unrecorded", "keep", "unrecorded", ""],

  ["*", "*", "*", "theirs", "keep", "theirs", ""],
  ["*", "*", "*", "unknown", "keep", "own", "warn lost"],
];

const rows = table.map(([run, work, commit, claim, record, outcome, line]) => {
  const [level, message] = line.split(" ") as ["warn" | "error", string]; // safe: as every `Line` that is one
  const settlement: Settlement = {
    record,
    outcome,
    line: line === "" ? undefined : { level, message },
  };
  return {
    cells: [run, work, commit, claim].map((cell) => (cell === "*" ? undefined : cell.split("|"))),
    settlement,
  };
});
/** The rows that were found before, by what they were found for: each run looks twice, and few differ. */
const found: Partial<
  Record<
    RunKind,
    Partial<Record<WorkEnd, Partial<Record<CommitEnd, Partial<Record<ClaimEnd, Settlement>>>>>>
  >
> = {};

/** Looks up how a run ends. */
export function settlementOf(
  run: RunKind,
  work: WorkEnd,
  commit: CommitEnd,
  claim: ClaimEnd,
): Settlement {
  return found[run]?.[work]?.[commit]?.[claim] ?? find(run, work, commit, claim);
}

function find(run: RunKind, work: WorkEnd, commit: CommitEnd, claim: ClaimEnd): Settlement {
  const values = [run, work, commit, claim];
  // Safe: for every claim there is a row that matches all the rest.
  const row = rows.find(({ cells }) =>
    cells.every((cell, index) => cell?.includes(values[index] as string) ?? true),
  );
  const { settlement } = row as (typeof rows)[number];
  found[run] ??= {};
  found[run][work] ??= {};
  found[run][work][commit] ??= {};
  found[run][work][commit][claim] = settlement;
  return settlement;
}
