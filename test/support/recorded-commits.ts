import { RunCommits } from "../../src/app/ctx/run.ts";
import type { RunHooks, Work } from "../../src/app/ctx/work.ts";
import { type RecordedOptions, recordedRun } from "./recorded-run.ts";

interface Options extends Omit<RecordedOptions, "events" | "jobs" | "channels"> {
  readonly work?: Partial<Work<unknown>>;
}

/** Commits of one run of a server with two events, a job and a channel, and the actions of the run. */
export function recordedCommits({ work, ...options }: Options = {}) {
  const { did, parts } = recordedRun({
    events: { "note.written": {}, "note.kept": { keptDays: 3 } },
    jobs: { "notes.note.print": {} },
    channels: { wall: {} },
    ...options,
  });
  const commits = new RunCommits<unknown>({
    ...parts,
    work: {
      claim: undefined,
      logPrefix: "once",
      cause: { causedBy: "r1", origRequestId: "r0", tenantId: "acme" },
      handle: () => undefined,
      ...work,
    },
  });
  /** Events so far, without the names of spans. */
  const done = () => did.filter(([what]) => what !== "named");
  const publish = (n = 1, caller: "handler" | "hook" = "handler") =>
    commits.start(caller, (effects) => effects.publish("note.written", { n }));
  const deliver = (key?: string, text = "hi") =>
    commits.start("handler", (effects) =>
      // Safe casts: the channel exists at run time, and takes any message.
      effects.deliver("wall" as never, { text } as never, ...(key === undefined ? [] : [{ key }])),
    );
  return { commits, did, done, publish, deliver };
}

/** Arguments of the calls of one kind. */
export function callsOf(did: readonly unknown[][], kind: string): unknown[][] {
  return did.filter(([what]) => what === kind).map(([, ...given]) => given);
}

export function hooksWith(itemsOf: RunHooks["itemsOf"]): RunHooks {
  return { before: async (_, input) => input, itemsOf };
}
