import { fork } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { median, type Result, resultOfRuns } from "./measure.ts";

type Env = Readonly<Record<string, string>>;

const warmUpTimes = 6_000;

/**
 * What an invocation costs whose caller names a trace, without and with an SDK of OpenTelemetry, and one that is measured: the
 * wrapped handler of `wrapped-no-log` beside the peers', in Lambda's environment, all without a line. Processes are started anew
 * for each run, rounds are short and in turns; the median of the runs' ratios counts, and their quartiles are the spread.
 */
export async function observeResults(env: Env): Promise<Result[]> {
  // Of one process, and in rounds of half a millisecond: what is compared is smaller than the difference of two processes, and than
  // what else the machine does in a longer round.
  const none = await runsOf(
    { runs: 12, rounds: 240, times: 250, processes: [["joining", "ignoring"]], spans: 0 },
    env,
  );
  const traced = await runsOf(
    {
      runs: 7,
      rounds: 30,
      times: 500,
      processes: [["spans"], ["xray"], ["instrumented"]],
      spans: 1,
    },
    env,
  );
  const measured = await runsOf(
    { runs: 7, rounds: 30, times: 500, processes: [["emf"], ["logMetrics"]], spans: 0 },
    env,
  );
  const beside = (peer: number) =>
    traced.map((run) => ({ ours: run[0] ?? 0, peer: run[peer] ?? 0 }));
  return [
    resultOfRuns({ id: "trace-none", unit: "ns" }, none.map(pair)),
    resultOfRuns({ id: "trace-on", unit: "ns" }, beside(1)),
    resultOfRuns({ id: "trace-on-otel", unit: "ns" }, beside(2)),
    resultOfRuns({ id: "metrics-on", unit: "ns" }, measured.map(pair)),
  ];
}

const pair = ([ours = 0, peer = 0]: readonly number[]) => ({ ours, peer });

interface Contest {
  readonly runs: number;
  readonly rounds: number;
  /** How many invocations a round has. */
  readonly times: number;
  /** The sides of each process. */
  readonly processes: readonly (readonly string[])[];
  /** How many spans each invocation has to make. */
  readonly spans: number;
}

/** The median of each side in each run, in nanoseconds an invocation. */
async function runsOf(contest: Contest, env: Env): Promise<number[][]> {
  const taken: number[][] = [];
  for (let run = 0; run < contest.runs; run++) taken.push(await runOf(contest, env));
  return taken;
}

async function runOf({ rounds, times, processes, spans }: Contest, env: Env): Promise<number[]> {
  const children = await Promise.all(processes.map((names) => start(names, env)));
  const sides = children.flatMap((child, index) =>
    (processes[index] ?? []).map((name) => ({ name, child, taken: [] as number[] })),
  );
  const warmUps = warmUpTimes / times;
  try {
    for (let round = 0; round < warmUps + rounds; round++) {
      // There and back: whatever grows or shrinks meanwhile, each is as often the first.
      for (const { name, child, taken } of round % 2 === 0 ? sides : sides.toReversed()) {
        child.send({ name, times });
        // Safe: it answers with nothing else.
        const [answer] = (await once(child, "message")) as [{ nanoseconds: number; spans: number }];
        if (round < warmUps) continue;
        if (answer.spans !== spans * times)
          throw new Error(`${name} made ${answer.spans} spans of ${times} invocations`);
        taken.push(answer.nanoseconds);
      }
    }
    return sides.map(({ taken }) => median(taken));
  } finally {
    for (const child of children) child.disconnect();
  }
}

/** Starts a production process in what Lambda's environment has, whose stdout is /dev/null. */
async function start(names: readonly string[], env: Env) {
  const lambda = {
    AWS_EXECUTION_ENV: "AWS_Lambda_nodejs24.x",
    AWS_LAMBDA_FUNCTION_NAME: "files",
    LAMBDA_TASK_ROOT: fileURLToPath(new URL(".", import.meta.url)),
    _HANDLER: "traced-peer.handler",
    _X_AMZN_TRACE_ID: "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
  };
  const child = fork(new URL("observed.ts", import.meta.url), names, {
    env: { ...process.env, ...env, ...lambda, NODE_ENV: "production" },
    stdio: ["ignore", openSync("/dev/null", "w"), "inherit", "ipc"],
  });
  await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) =>
      Promise.reject(new Error(`${names} exited with ${code} before it was ready`)),
    ),
  ]);
  return child;
}
