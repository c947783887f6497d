import type { RaceMove, RacePath } from "./search.ts";
import type { RaceStep } from "./task.ts";

/** Error of `raceEverywhere`: the order that failed. */
export class RaceError extends Error {
  override readonly name = "RaceError";
  readonly order: readonly RaceStep[];
  readonly preemptions: number;
  /** For the option `replay`, even in another process. */
  readonly replay: readonly RaceMove[];

  constructor(
    error: unknown,
    number: number,
    { taken, preemptions }: RacePath,
    steps: readonly RaceStep[],
  ) {
    const reason = error instanceof Error ? error.message : String(error);
    const count = `${preemptions} preemption${preemptions === 1 ? "" : "s"}`;
    super(`raceEverywhere: order ${number}, with ${count}: ${reason}\n\n${tableOf(steps)}`, {
      cause: error,
    });
    this.order = steps;
    this.preemptions = preemptions;
    this.replay = [...taken];
  }
}

function tableOf(steps: readonly RaceStep[]): string {
  const head = { actor: "actor", call: "call", kind: "call", outcome: "outcome" };
  const rows = [head, ...steps];
  const longest = (lengths: readonly number[]) => Math.max(...lengths);
  const actors = longest(rows.map(({ actor }) => actor.length));
  const calls = longest(rows.map(({ call }) => call.length));
  return rows
    .map(({ actor, call, kind, outcome }) => {
      const shown = kind === "call" ? outcome : `${outcome}, ${kind}`;
      return `${actor.padEnd(actors)}  ${call.padEnd(calls)}  ${shown}`;
    })
    .join("\n");
}
