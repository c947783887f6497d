/** A write's answer is replayed to its repeats; a message is redelivered until its work is done. */
const runKinds = ["write", "message"] as const;
export type RunKind = (typeof runKinds)[number];

const workEnds = [
  "answered",
  /** The answer reports that nothing was done (status 400 or above), or cannot be replayed. */
  "refused",
  "threw",
  /** The work threw after every caller had disconnected. */
  "stopped",
  /** The work threw after its timeout, so its progress is unknown. */
  "timed out",
] as const;
export type WorkEnd = (typeof workEnds)[number];

/** `unknown`: the transaction may or may not have been written. */
const commitEnds = ["none", "committed", "unknown"] as const;
export type CommitEnd = (typeof commitEnds)[number];

const claimEnds = [
  "unclaimed",
  "ours",
  /** Another owner has taken the claim over. */
  "lost",
  "completed",
  /** Completing the claim found another owner. */
  "fenced",
  /** Completing the claim failed in the store. */
  "unrecorded",
  /** Retaking the claim found that another run had completed it. */
  "theirs",
  /** Retaking the claim failed, or found the other run still running. */
  "unknown",
] as const;
export type ClaimEnd = (typeof claimEnds)[number];

/** Action on the record of the claim. */
type RecordStep =
  /** The record is completed, belongs to another owner, or its lease will expire. */
  | "keep"
  | "complete"
  | "release"
  /** May find the other run's answer. */
  | "retake";

/** Outcome for the callers, once the record is settled. */
type Outcome =
  | "own"
  /** The answer of the commit, regardless of later failures. */
  | "committed"
  | "theirs"
  | "redeliver"
  /** Error: the work is done, but could not be recorded and may run again. */
  | "unrecorded"
  /** No outcome yet: the action on the record leads to another row. */
  | "";

/** Level of a log line, and the end of its message. */
type Line =
  | ""
  | "error threw_after_commit"
  | "error commit_uncertain"
  | "error completion_failed"
  | "warn fenced"
  | "warn lost";

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

/**
 * All ways a run can end. The first matching row applies. A cell lists the values it matches; `*`
 * matches everything.
 */
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
  // Safe cast: a `Line` that is not empty has two words.
  const [level, message] = line.split(" ") as ["warn" | "error", string];
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

const settlements = byValue(runKinds, (run) =>
  byValue(workEnds, (work) =>
    byValue(commitEnds, (commit) =>
      byValue(claimEnds, (claim) => firstMatch([run, work, commit, claim])),
    ),
  ),
);

export function settlementOf(
  run: RunKind,
  work: WorkEnd,
  commit: CommitEnd,
  claim: ClaimEnd,
): Settlement {
  return settlements[run][work][commit][claim];
}

function firstMatch(values: readonly string[]): Settlement {
  // Safe cast: every claim state has a row that matches all other values.
  const row = rows.find(({ cells }) =>
    cells.every((cell, index) => cell?.includes(values[index] as string) ?? true),
  );
  return (row as (typeof rows)[number]).settlement;
}

function byValue<Key extends string, Value>(
  keys: readonly Key[],
  of: (key: Key) => Value,
): Readonly<Record<Key, Value>> {
  // Safe cast: each key has an entry.
  return Object.fromEntries(keys.map((key) => [key, of(key)])) as Record<Key, Value>;
}
