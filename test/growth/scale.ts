// The formulas of docs/scale.md, and the page's table.

/** An eventually consistent Query of at most 4 KB costs half a unit. */
const unitsPerRead = 0.5;

/** Calls per second that refresh configuration rows, in features of four or more keys that are read all the time. */
export function configReads({
  processes,
  features,
  owners,
  ttlMs = 5_000,
}: {
  readonly processes: number;
  readonly features: number;
  /** Tenants and users whose rows a process reads. */
  readonly owners: number;
  readonly ttlMs?: number;
}) {
  const system = (processes * features * 1_000) / (0.95 * ttlMs);
  return { system, all: system * (1 + owners) };
}

/** Calls on the claim of one write, whose duplicates reach all processes while it runs. */
export function claimCalls({
  processes,
  runMs,
}: {
  readonly processes: number;
  readonly runMs: number;
}) {
  return { writes: processes + 1, reads: (processes - 1) * pollsOf(runMs) };
}

/** Reads of a duplicate until it sees the end of the run. The pauses grow from 40 ms to 500 ms. */
function pollsOf(runMs: number): number {
  let polls = 0;
  for (let [atMs, pauseMs] = [0, 40]; atMs < runMs; pauseMs = Math.min(500, pauseMs * 1.5)) {
    atMs += pauseMs;
    polls += 1;
  }
  return polls;
}

/** Calls for events of up to 1 KB, each published by a separate commit. */
export function outboxCalls({
  processes,
  events,
}: {
  readonly processes: number;
  /** Events of a process. */
  readonly events: number;
}) {
  const all = processes * events;
  // The transaction writes a row for two units, and dispatching deletes it for one.
  return { commits: all, putEvents: all, deletes: all, unitsPerShard: (3 * all) / shards };
}

const shards = 8;

/** Calls of a sweep by each process. In an outage of the bus, the rows of `full` shards stay. */
export function sweepCalls({
  processes,
  full = 0,
}: {
  readonly processes: number;
  readonly full?: number;
}) {
  return { queries: processes * (2 * shards + full), claims: processes * 2 * full };
}

const sweepsPerSecond = 1 / 10;

/** Calls for the tokens of one window, whose requests reach the processes evenly. */
export function leaseCalls({
  processes,
  requests,
}: {
  readonly processes: number;
  readonly requests: number;
}): number {
  return Math.min(requests, processes * Math.ceil(Math.log2(requests / processes + 1)));
}

/** Largest number of messages that all workers of one queue hold. */
export function heldMessages({ processes }: { readonly processes: number }): number {
  return 19 * processes;
}

/**
 * Write units for the start and the end of a run that takes the last of `slots`. All slots of a
 * limit are one item of DynamoDB, which charges a change for the size of the whole item.
 */
export function slotUnits({ slots }: { readonly slots: number }): number {
  return 2 * Math.ceil((holderBytes * slots) / 1_024);
}

/** Of a job. The row's keys add less than two of these. */
const holderBytes = 155;

/** Calls of SSM by processes that start: pages of ten overrides, and the key ring. */
export function parameterCalls({
  processes,
  overrides,
  keyRing,
}: {
  readonly processes: number;
  /** Parameters below `ssm.path`. */
  readonly overrides: number;
  readonly keyRing: boolean;
}): number {
  return processes * (Math.max(1, Math.ceil(overrides / 10)) + (keyRing ? 1 : 0));
}

/** Calls of each kind, SendMessage and DeleteMessage, on the FIFO queue: one for each message. */
export function orderedCalls({
  processes,
  jobs,
}: {
  readonly processes: number;
  /** Jobs and deliveries of a process per second. */
  readonly jobs: number;
}): number {
  return processes * jobs;
}

const sizes = [10, 100, 1_000, 10_000];

interface Row {
  readonly of: string;
  readonly at: (processes: number) => number;
  readonly limit: number;
}

const rows: readonly Row[] = [
  {
    of: "read units of `config#system`",
    at: (processes) => unitsPerRead * configReads({ processes, features, owners }).system,
    limit: 3_000,
  },
  {
    of: "read units of the configuration table",
    at: (processes) => unitsPerRead * configReads({ processes, features, owners }).all,
    limit: 40_000,
  },
  {
    of: "write units of one hot [claim](glossary.md#claim)",
    at: (processes) => claimCalls({ processes, runMs: 1_000 }).writes,
    limit: 1_000,
  },
  {
    of: "read units of one hot claim",
    at: (processes) => claimCalls({ processes, runMs: 1_000 }).reads,
    limit: 3_000,
  },
  {
    of: "write units of one [outbox](glossary.md#outbox) shard",
    at: (processes) => outboxCalls({ processes, events: 1 }).unitsPerShard,
    limit: 1_000,
  },
  {
    of: "calls of `PutEvents`",
    at: (processes) => outboxCalls({ processes, events: 1 }).putEvents,
    limit: 10_000,
  },
  {
    of: "read units of [sweeps](glossary.md#sweep) of the outbox",
    at: (processes) => unitsPerRead * sweepsPerSecond * sweepCalls({ processes }).queries,
    limit: 40_000,
  },
  {
    of: "write units of sweeps on their claims, while the bus is down",
    at: (processes) => sweepsPerSecond * sweepCalls({ processes, full: shards }).claims,
    limit: 1_000,
  },
  {
    of: "write units of one rate limit's row",
    at: (processes) => leaseCalls({ processes, requests: 60_000 }) / 60,
    limit: 1_000,
  },
  {
    of: "write units of one `total` of [concurrency](fairness.md#concurrency)",
    at: (processes) => {
      const slots = Math.min(1_000, 10 * processes);
      return (slots / 10) * slotUnits({ slots });
    },
    limit: 1_000,
  },
  {
    of: "calls of SSM, while all processes start within a minute",
    at: (processes) => parameterCalls({ processes, overrides: 25, keyRing: true }) / 60,
    limit: 40,
  },
  {
    of: "calls of `SendMessage`, and of `DeleteMessage`, on the FIFO queue of jobs",
    at: (processes) => orderedCalls({ processes, jobs: 1 }),
    limit: 300,
  },
  {
    of: "messages of one queue in flight",
    at: (processes) => heldMessages({ processes }),
    limit: 120_000,
  },
];

const [features, owners] = [10, 20];

/** The table of the page. Bold numbers reach the limit. */
export function scaleTable(): string {
  const head = ["per second", ...sizes.map(number), "AWS's limit"];
  const body = rows.map(({ of, at, limit }) => [
    of,
    ...sizes.map(at).map((value) => (value >= limit ? `**${number(value)}**` : number(value))),
    number(limit),
  ]);
  return [head, head.map(() => "---"), ...body]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

function number(value: number): string {
  return (value < 10 ? Number(value.toFixed(1)) : Math.round(value)).toLocaleString("en-US");
}
