import type { ShutdownTimes } from "./shutdown-limits.ts";

/** State of a process (specification 3.1). */
export type LifecycleState = "starting" | "running" | ShutdownPhase;

export type ShutdownPhase =
  /** Readiness fails. Requests are still served until load balancers notice. */
  | "draining"
  /** New requests are rejected; requests in flight finish. */
  | "in-flight-drain"
  | "workers-stopped"
  | "resources-closed"
  /** Buffered logs are written, and the process ends. */
  | "flushed";

/** Instruction to the process. Missing the deadline of a phase triggers its `cut-` action. */
export type LifecycleAction =
  /** Readiness fails, responses close their connections, and workers stop taking new work. */
  | "drain"
  /** Idle connections close too. */
  | "close-listener"
  | "abort-requests"
  | "cut-requests"
  | "finish-workers"
  | "cut-workers"
  | "close-resources"
  | "cut-resources"
  | "flush"
  | "exit";

export type LifecycleEvent =
  | { readonly type: "started" }
  /** The first signal starts the drain, the second hurries it, the third ends the process. */
  | { readonly type: "terminate"; readonly skipsLinger?: boolean }
  /** An uncaught error or a failed start. Starts the drain with exit code 1. */
  | { readonly type: "fault" }
  /** `clean` is `false` if the work of the phase failed. */
  | { readonly type: "done"; readonly phase: ShutdownPhase; readonly clean?: boolean }
  | { readonly type: "time" };

export interface Lifecycle {
  readonly state: LifecycleState;
  readonly times: ShutdownTimes;
  /** `undefined` before the shutdown. */
  readonly deadlines: Deadlines | undefined;
  readonly signals: number;
  readonly exitCode: 0 | 1;
  readonly cutOff: readonly ShutdownPhase[];
  readonly hasAborted: boolean;
  /** Whether the process may end with exit code 0 before all resources are closed. */
  readonly mayLeaveOpen: boolean;
  /** When the process entered each state, in milliseconds of the caller's clock. */
  readonly entered: Readonly<Partial<Record<LifecycleState, number>>>;
  /** Later events have no effect. */
  readonly hasEnded: boolean;
}

export function startingLifecycle(
  times: ShutdownTimes,
  nowMs: number,
  mayLeaveOpen = false,
): Lifecycle {
  return {
    state: "starting",
    times,
    deadlines: undefined,
    signals: 0,
    exitCode: 0,
    cutOff: [],
    hasAborted: false,
    mayLeaveOpen,
    entered: { starting: nowMs },
    hasEnded: false,
  };
}

/** The actions run in order. */
export interface Step {
  readonly lifecycle: Lifecycle;
  readonly actions: readonly LifecycleAction[];
}

/** Phases in order: what starts each, what cuts it off, and when it is due. */
const phases: Readonly<
  Record<
    ShutdownPhase,
    {
      readonly enter: LifecycleAction;
      readonly cut: readonly LifecycleAction[];
      readonly due: keyof Deadlines;
    }
  >
> = {
  draining: { enter: "drain", cut: [], due: "lingerMs" },
  "in-flight-drain": { enter: "close-listener", cut: ["cut-requests"], due: "drainMs" },
  "workers-stopped": { enter: "finish-workers", cut: ["cut-workers"], due: "workersMs" },
  "resources-closed": { enter: "close-resources", cut: ["cut-resources"], due: "resourcesMs" },
  flushed: { enter: "flush", cut: [], due: "totalMs" },
};
const order = Object.keys(phases) as ShutdownPhase[]; // safe: the type of the table names its keys

/**
 * Computes the effect of an event on a process, as a pure state machine.
 *
 * | state | leaves it when | next |
 * |---|---|---|
 * | starting | it has started | running |
 * | starting, running | it receives a stop signal or fails | draining: readiness fails |
 * | draining | the linger ends | in-flight-drain: the listener closes |
 * | in-flight-drain | requests finish, or their deadline passes (abort 1 s before) | workers-stopped |
 * | workers-stopped | workers finish, or their deadline passes | resources-closed |
 * | resources-closed | resources are closed, or their deadline passes | flushed |
 * | flushed | the flush is done, or the total time ends | the end |
 */
export function step(lifecycle: Lifecycle, event: LifecycleEvent, nowMs: number): Step {
  if (lifecycle.hasEnded) return { lifecycle, actions: [] };
  return settled(taken(lifecycle, event, nowMs), nowMs);
}

function taken(lifecycle: Lifecycle, event: LifecycleEvent, nowMs: number): Step {
  const { state, signals } = lifecycle;
  const unchanged: Step = { lifecycle, actions: [] };
  switch (event.type) {
    case "started":
      if (state !== "starting") return unchanged;
      return { lifecycle: entering(lifecycle, "running", nowMs), actions: [] };
    case "fault":
      return begin({ ...lifecycle, exitCode: 1 }, false, nowMs);
    case "terminate": {
      const told = { ...lifecycle, signals: signals + 1 };
      if (signals === 0) return begin(told, event.skipsLinger === true, nowMs);
      if (signals === 1)
        return { lifecycle: { ...told, deadlines: hurried(told, nowMs) }, actions: [] };
      return { lifecycle: { ...told, exitCode: 1, hasEnded: true }, actions: ["exit"] };
    }
    case "done": {
      if (event.phase !== state) return unchanged;
      const isLoss = event.clean === false && !mayIgnore(lifecycle, event.phase);
      return next(isLoss ? { ...lifecycle, exitCode: 1 } : lifecycle, nowMs);
    }
    case "time":
      return unchanged;
  }
}

/** Time of the next `time` event, on the caller's clock; `undefined` before and after a shutdown. */
export function nextDue({ state, deadlines, hasAborted, hasEnded }: Lifecycle): number | undefined {
  if (deadlines === undefined || hasEnded) return undefined;
  if (state === "in-flight-drain" && !hasAborted) return deadlines.abortMs;
  return deadlines[phases[state as ShutdownPhase].due]; // safe: deadlines exist only in these phases
}

function begin(lifecycle: Lifecycle, skipsLinger: boolean, nowMs: number): Step {
  if (lifecycle.deadlines !== undefined) return { lifecycle, actions: [] };
  const { state, times } = lifecycle;
  // Clients do not send requests to a process that is still starting.
  const lingerMs = skipsLinger || state === "starting" ? 0 : times.lingerMs;
  const draining = { ...lifecycle, deadlines: deadlinesFrom(nowMs, { ...times, lingerMs }) };
  return { lifecycle: entering(draining, "draining", nowMs), actions: [phases.draining.enter] };
}

function settled({ lifecycle, actions }: Step, nowMs: number): Step {
  const due = nextDue(lifecycle);
  if (due === undefined || due > nowMs) return { lifecycle, actions };
  const phase = lifecycle.state as ShutdownPhase; // safe: deadlines exist only in these phases
  if (phase === "in-flight-drain" && !lifecycle.hasAborted) {
    return settled(
      { lifecycle: { ...lifecycle, hasAborted: true }, actions: [...actions, "abort-requests"] },
      nowMs,
    );
  }
  const exitCode = mayIgnore(lifecycle, phase) ? lifecycle.exitCode : 1;
  const late: Lifecycle =
    phase === "draining"
      ? lifecycle
      : { ...lifecycle, exitCode, cutOff: [...lifecycle.cutOff, phase] };
  const gone = next(late, nowMs);
  return settled(
    { lifecycle: gone.lifecycle, actions: [...actions, ...phases[phase].cut, ...gone.actions] },
    nowMs,
  );
}

function mayIgnore({ mayLeaveOpen }: Lifecycle, phase: ShutdownPhase): boolean {
  return mayLeaveOpen && phase === "resources-closed";
}

function next(lifecycle: Lifecycle, nowMs: number): Step {
  const phase = order[order.indexOf(lifecycle.state as ShutdownPhase) + 1];
  if (phase === undefined)
    return { lifecycle: { ...lifecycle, hasEnded: true }, actions: ["exit"] };
  return { lifecycle: entering(lifecycle, phase, nowMs), actions: [phases[phase].enter] };
}

function entering(lifecycle: Lifecycle, state: LifecycleState, nowMs: number): Lifecycle {
  return { ...lifecycle, state, entered: { ...lifecycle.entered, [state]: nowMs } };
}

/** Times of the steps of a shutdown, in milliseconds of the caller's clock. */
interface Deadlines {
  /** When the listener closes. */
  readonly lingerMs: number;
  /** When the signals of requests in flight abort. */
  readonly abortMs: number;
  /** When requests in flight are cut off. */
  readonly drainMs: number;
  /** When workers are abandoned. Another process receives their unfinished work. */
  readonly workersMs: number;
  /** When the shutdown stops waiting for resources to close. */
  readonly resourcesMs: number;
  readonly totalMs: number;
}

/** Most time between the abort of requests in flight and their cutoff, in milliseconds. */
const abortLeadMs = 1_000;

/** The phases after the drain share the rest of the total time. A short rest is mostly the flush's. */
export function deadlinesFrom(
  startMs: number,
  { lingerMs, drainMs, totalMs }: ShutdownTimes,
): Deadlines {
  const linger = startMs + lingerMs;
  const total = startMs + totalMs;
  const drain = Math.min(linger + drainMs, total);
  const restMs = total - drain;
  const [workers, resources] = restMs < 1_000 ? [0.2, 0.5] : [0.4, 0.9];
  return {
    lingerMs: linger,
    abortMs: Math.max(linger, drain - Math.min(abortLeadMs, drainMs / 10)),
    drainMs: drain,
    workersMs: drain + restMs * workers,
    resourcesMs: drain + restMs * resources,
    totalMs: total,
  };
}

/** Time after the second signal, in milliseconds. Closing resources may take 90%. */
const hurriedMs = 1_000;

/** Makes all deadlines due now, except the deadlines for closing resources and for the whole shutdown. */
function hurried({ deadlines }: Lifecycle, nowMs: number): Deadlines {
  const known = deadlines as Deadlines; // safe: the first signal sets the deadlines
  const within = (atMs: number, ms = 0) => Math.min(atMs, nowMs + ms);
  return {
    lingerMs: within(known.lingerMs),
    abortMs: within(known.abortMs),
    drainMs: within(known.drainMs),
    workersMs: within(known.workersMs),
    resourcesMs: within(known.resourcesMs, hurriedMs * 0.9),
    totalMs: within(known.totalMs, hurriedMs),
  };
}

/** State of the process, which the host updates and `/health/ready` reports. */
export interface ProcessState {
  readonly state: LifecycleState;
  readonly draining: AbortSignal;
  /** Makes readiness fail and responses close their connections. */
  drain(): void;
  enter(state: LifecycleState): void;
}

export function createProcessState(): ProcessState {
  const controller = new AbortController();
  // A Lambda function has no lifecycle: it is running whenever it is invoked.
  let state: LifecycleState = "running";
  return {
    get state() {
      return state === "running" && controller.signal.aborted ? "draining" : state;
    },
    draining: controller.signal,
    drain: () => controller.abort(),
    enter: (entered) => {
      state = entered;
    },
  };
}
