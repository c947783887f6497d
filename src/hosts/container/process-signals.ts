import type { Runtime } from "../../app/runtime/runtime.ts";
import { type ProcessLife, thrown } from "./process-life.ts";

export interface HostProcess extends Pick<NodeJS.EventEmitter, "on" | "off"> {
  readonly env: NodeJS.ProcessEnv;
  exit(code: number): void;
}

/** Time in which two signals count as one, in milliseconds. */
const sameSignalMs = 200;

export interface ProcessTie {
  /** Whether the caller closed the container, so that the process continues. */
  isCallers: boolean;
  readonly ignore: () => void;
}

/** Listens to signals and uncaught errors, and exits once the lifecycle has ended. */
export function listen(
  process: HostProcess,
  { log, environment }: Pick<Runtime, "log" | "environment">,
  life: Pick<ProcessLife, "tell" | "ended">,
): ProcessTie {
  let lastAt = Number.NEGATIVE_INFINITY;
  let count = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    // npm forwards a signal that the terminal has already sent to the whole process group. Both
    // count as one signal.
    if (performance.now() - lastAt <= sameSignalMs) return;
    lastAt = performance.now();
    count += 1;
    log.info(count === 1 ? "shutdown.started" : "shutdown.hurried", { signal });
    life.tell({
      type: "terminate",
      skipsLinger: signal === "SIGINT" && environment === "development",
    });
  };
  const onFault = (msg: string) => (error: unknown) => {
    log.error(msg, thrown(error));
    life.tell({ type: "fault" });
  };
  const listeners = {
    SIGTERM: onSignal,
    SIGINT: onSignal,
    uncaughtException: onFault("process.uncaught_exception"),
    unhandledRejection: onFault("process.unhandled_rejection"),
  };
  for (const [name, listener] of Object.entries(listeners)) process.on(name, listener);
  const tie: ProcessTie = {
    isCallers: false,
    ignore: () => {
      for (const [name, listener] of Object.entries(listeners)) process.off(name, listener);
    },
  };
  void life.ended.then((code) => {
    if (!tie.isCallers) process.exit(code);
  });
  return tie;
}
