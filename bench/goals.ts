import type { Result } from "./measure.ts";

/** The goal of a row of docs/speed.md. */
export interface Goal {
  /** Such as `ratio <= 0.3`, `ours = 2` or `ours <= 1000 ns`; `none` for a row without a goal. */
  readonly goal: string;
  /** Present exactly while the row misses its goal: why it does. The page prints it. */
  readonly missed?: string;
}

export type Status = "met" | "missed" | "none";

/** A row of `results.json`. */
export interface Row extends Result, Goal {
  readonly status: Status;
}

/** Gives a row its goal, and its status. @throws Error if `goals` does not name it. */
export function judged(result: Result): Row {
  const { id, ours, peer, unit, ratio, spread, floor } = result;
  const own = goals[id];
  if (own === undefined) throw new Error(`${id} has no goal in bench/goals.ts`);
  const { goal, missed } = own;
  return {
    ...{ id, ours, peer, unit, ratio },
    ...(spread && { spread }),
    ...(floor !== undefined && { floor }),
    ...{ goal, status: statusOf(result, goal) },
    ...(missed !== undefined && { missed }),
  };
}

/** Compares the ratio or our own figure with the goal. */
export function statusOf({ ours, ratio }: Pick<Result, "ours" | "ratio">, goal: string): Status {
  if (goal === "none") return "none";
  const [, subject, sign, bound] = /^(ratio|ours) (<=|>=|=) ([\d.]+)(?: \w+)?$/.exec(goal) ?? [];
  if (bound === undefined) throw new Error(`"${goal}" is not a goal`);
  const figure = subject === "ratio" ? ratio : ours;
  const distance = figure - Number(bound);
  const isMet = sign === "<=" ? distance <= 0 : sign === ">=" ? distance >= 0 : distance === 0;
  return isMet ? "met" : "missed";
}

/** Names each row that misses its goal without a reason, and each that still has one and meets it. */
export function silentMisses(rows: readonly Row[]): string[] {
  return rows.flatMap(({ id, status, missed, goal, ratio }) => {
    if ((status === "missed") === (missed !== undefined)) return [];
    return status === "missed"
      ? [
          `${id} misses "${goal}" with ${ratio}: give its reason in bench/goals.ts, or make it faster`,
        ]
      : [`${id} meets "${goal}" with ${ratio}: delete the reason in bench/goals.ts`];
  });
}

export const goals: Readonly<Record<string, Goal>> = {
  "config-warm": { goal: "ratio <= 0.6" },
  "config-cold-calls": {
    goal: "ours = 1",
    missed:
      "four or more keys of a level are one Query, sent together with the Queries of the other levels. It takes half a read unit; one BatchGetItem for all levels takes half a unit for each row",
  },
  "config-concurrent-calls": { goal: "ours = 1", missed: "the same as `config-cold-calls`" },
  "config-absent-calls": { goal: "ours = 1", missed: "the same as `config-cold-calls`" },
  "write-calls": { goal: "ours = 2" },
  "replay-calls": { goal: "ours = 1" },
  "commit-calls": { goal: "ours = 2" },
  "duplicate-calls": { goal: "ours = 2" },
  "event-calls": { goal: "ours = 2" },
  "write-cpu": { goal: "ratio <= 0.45" },
  "wrapped-no-log": {
    goal: "ratio <= 0.3",
    missed:
      "when it was profiled, the configuration read and JSON took a quarter of our time. The ambient store, the response's headers and the signal, which the peer lacks, took another sixth",
  },
  "wrapped-one-log": {
    goal: "ratio <= 0.27",
    missed: "the same as `wrapped-no-log`. The line itself is within its goal (`log-powertools`)",
  },
  "log-powertools": { goal: "ratio <= 0.3" },
  "log-pino": { goal: "ratio <= 1.2" },
  "bundle-import": { goal: "ratio <= 0.25" },
  "first-value": {
    goal: "ratio <= 0.55",
    missed: "the floor, which only signs one request, takes three quarters of our time",
  },
  "http-no-log": {
    goal: "ratio <= 1.2",
    missed:
      "the floor is what headers, ambient store and signal cost by hand. The rest are routes, configuration, access rules and bounds, which the peer lacks",
  },
  "http-equal": {
    goal: "ratio <= 1",
    missed:
      "keelson also bounds headers, bodies, unread bytes and requests in flight, and resolves the value for a tenant and a user",
  },
  "http-equal-line": { goal: "ratio <= 0.9" },
  "http-one-log": { goal: "ratio <= 1.4" },
  "drain-lost-balancer": { goal: "ours = 0" },
  "drain-resets": { goal: "ours = 0" },
  "drain-exit": { goal: "ours <= 100" },
  "http-memory": { goal: "ratio <= 1.1" },
  "lambda-cold": {
    goal: "ratio <= 0.55",
    missed: "the floor, which only signs one request, takes two thirds of our time",
  },
  "json-hostile": { goal: "ratio <= 2" },
  "wall-command": { goal: "ours <= 1000 ns" },
  "user-bundle-cold": { goal: "ratio <= 1.03" },
  "user-esbuild-cold": {
    goal: "ratio <= 1.03",
    missed: "the bound is within the spread of a run",
  },
  "lambda-cold-tls": { goal: "ratio <= 0.6", missed: "the same as `lambda-cold`" },
  "second-request": { goal: "ratio <= 1" },
  "first-write-cold": {
    goal: "ratio <= 0.6",
    missed:
      "the modules of a write are read and compiled with the first one. In turns with the version that loaded the SDK, this one took 0.65 of its time",
  },
  "output-check": { goal: "ratio <= 1.5" },
  "typecheck-hono": { goal: "ratio <= 1" },
  "typecheck-inferred": { goal: "ratio <= 1" },
  "typecheck-hono-declared": { goal: "ratio <= 1" },
  "typecheck-inferred-declared": { goal: "ratio <= 2" },
  "typecheck-hono-ts5": { goal: "ratio <= 1" },
  "typecheck-inferred-ts5": { goal: "ratio <= 1" },
  "instantiations-hono": { goal: "ratio <= 1" },
  "instantiations-inferred": { goal: "ratio <= 1" },
  "client-types-made": { goal: "ratio <= 1" },
  "request-line": {
    goal: "ratio <= 1",
    missed:
      "the peer has no ambient store, signal, redaction or trace ID. `http-equal-line` compares with a peer that has them",
  },
  "metrics-on-http": {
    goal: "ratio <= 1.2",
    missed: "the peer measures one of our three metrics, and has no ambient store or signal",
  },
  "trace-none": { goal: "ratio <= 1.02" },
  "trace-on": { goal: "ratio <= 1" },
  "trace-on-otel": {
    goal: "ratio <= 1",
    missed: "runs on a quiet machine differ: from 0.94 to 1.03",
  },
  "metrics-on": { goal: "ratio <= 1.5" },
  "typecheck-handles": { goal: "ratio <= 0.8" },
  "typecheck-handles-ts5": { goal: "ratio <= 0.8" },
  "front-http-cold": { goal: "none" },
  "front-http-stream": { goal: "none" },
  "front-http-rate": { goal: "none" },
  "front-rest-cold": { goal: "none" },
  "front-rest-stream": { goal: "none" },
  "front-rest-rate": { goal: "none" },
  "front-url-cold": { goal: "none" },
  "front-url-stream": { goal: "none" },
  "front-url-rate": { goal: "none" },
  "front-web-cold": { goal: "none" },
  "front-web-stream": { goal: "none" },
  "front-web-rate": { goal: "none" },
  "front-web-drain": { goal: "none" },
  "race-orders": { goal: "ours >= 100" },
  "limit-check": { goal: "ratio <= 1" },
  "limit-calls": { goal: "ours <= 100" },
};
