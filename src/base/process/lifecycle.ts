import { type Deadlines, deadlinesFrom, type ShutdownTimes } from "./times.ts";

/** Where a process is in its life (specification 3.1). */
export type LifecycleState = "starting" | "running" | ShutdownPhase;

/** The phases of a shutdown, in their order. */
export type ShutdownPhase =
  /** Readiness fails; requests are still served, while balancers take notice. */
  | "draining"
  /** No request is accepted any more; those in flight finish. */
  | "in-flight-drain"
  /** Queues and outbox: what they are at is finished. */
  | "workers-stopped"
  /** Database and resources are closed. */
  | "resources-closed"
  /** What was logged goes out, and the process ends. */
  | "flushed";

/** What the process has to do. The first of a phase is done as it is entered, `cut-` where it has taken too long. */
export type LifecycleAction =
  /** Readiness fails, responses close their connections, workers take nothing new. */
  | "drain"
  /** The listener closes, and connections that wait for nothing. */
  | "close-listener"
  /** The signals of requests in flight abort. */
  | "abort-requests"
  | "cut-requests"
  | "finish-workers"
  | "cut-workers"
  | "close-resources"
  | "cut-resources"
  | "flush"
  /** The process ends, with the exit code. */
  | "exit";

/** What happens to the process. */
export type LifecycleEvent =
  | { readonly type: "started" }
  /** A signal: the first drains, the second waits for nothing any more, the third ends the process. */
  | { readonly type: "terminate"; readonly skipsLinger?: boolean }
  /** Something was thrown that nobody caught, or it could not start: it drains, and the exit code is 1. */
  | { readonly type: "fault" }
  /** What a phase was entered for is done; `clean` says whether it went well. */
  | { readonly type: "done"; readonly phase: ShutdownPhase; readonly clean?: boolean }
  /** Time has passed. */
  | { readonly type: "time" };

/** The life of a process so far. */
export interface Lifecycle {
  readonly state: LifecycleState;
  readonly times: ShutdownTimes;
  /** When the phases end at the latest; `undefined` before the shutdown. */
  readonly deadlines: Deadlines | undefined;
  /** How often it was told to stop. */
  readonly signals: number;
  readonly exitCode: 0 | 1;
  /** The phases that were not waited for. */
  readonly cutOff: readonly ShutdownPhase[];
  /** Whether requests in flight were told to stop. */
  readonly hasAborted: boolean;
  /** When each state was entered, in milliseconds since the epoch. */
  readonly entered: Readonly<Partial<Record<LifecycleState, number>>>;
  /** Whether nothing is to come any more. */
  readonly hasEnded: boolean;
}

/** A process that starts. */
export function startingLifecycle(times: ShutdownTimes, nowMs: number): Lifecycle {
  return {
    state: "starting",
    times,
    deadlines: undefined,
    signals: 0,
    exitCode: 0,
    cutOff: [],
    hasAborted: false,
    entered: { starting: nowMs },
    hasEnded: false,
  };
}

/** What comes of an event: the life after it, and what is to be done, in this order. */
export interface Step {
  readonly lifecycle: Lifecycle;
  readonly actions: readonly LifecycleAction[];
}

const phases: readonly ShutdownPhase[] = [
  "draining",
  "in-flight-drain",
  "workers-stopped",
  "resources-closed",
  "flushed",
];

/** What is done as a phase is entered, and where it has taken too long. */
const actionsOf: Readonly<
  Record<ShutdownPhase, { readonly enter: LifecycleAction; readonly cut?: LifecycleAction }>
> = {
  draining: { enter: "drain" },
  "in-flight-drain": { enter: "close-listener", cut: "cut-requests" },
  "workers-stopped": { enter: "finish-workers", cut: "cut-workers" },
  "resources-closed": { enter: "close-resources", cut: "cut-resources" },
  flushed: { enter: "flush" },
};

/**
 * The state machine of a process. Pure: it is told what happens and when, and says what is to be done.
 *
 * | state | it goes on when | to |
 * |---|---|---|
 * | starting | it has started | running |
 * | starting, running | it is told to stop | draining: readiness fails |
 * | draining | the linger is over | in-flight-drain: the listener closes |
 * | in-flight-drain | requests have finished, or their time is over (1 s before it they are told) | workers-stopped |
 * | workers-stopped | workers have finished, or their time is over | resources-closed |
 * | resources-closed | resources are closed, or their time is over | flushed |
 * | flushed | it is done, or the whole time is over | the end |
 *
 * With the second signal no phase is waited for but the closing of resources, which gets a moment; with the third the
 * process ends. A process that is told to stop while it starts does not linger.
 */
export function step(lifecycle: Lifecycle, event: LifecycleEvent, nowMs: number): Step {
  if (lifecycle.hasEnded) return { lifecycle, actions: [] };
  return settled(taken(lifecycle, event, nowMs), nowMs);
}

/** What the event itself changes; what is due besides comes after it. */
function taken(lifecycle: Lifecycle, event: LifecycleEvent, nowMs: number): Step {
  const { state, signals } = lifecycle;
  const unchanged: Step = { lifecycle, actions: [] };
  switch (event.type) {
    case "started":
      return state === "starting"
        ? { lifecycle: entering(lifecycle, "running", nowMs), actions: [] }
        : unchanged;
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
      return next(event.clean === false ? { ...lifecycle, exitCode: 1 } : lifecycle, nowMs);
    }
    case "time":
      return unchanged;
  }
}

/** When `time` has to be told next, in milliseconds since the epoch; `undefined` as long as nothing is due. */
export function nextDue({ state, deadlines, hasAborted, hasEnded }: Lifecycle): number | undefined {
  if (deadlines === undefined || hasEnded) return undefined;
  return state === "in-flight-drain" && !hasAborted
    ? deadlines.abortMs
    : deadlineOf(state as ShutdownPhase, deadlines);
}

/** Begins the shutdown, unless it has begun. */
function begin(lifecycle: Lifecycle, skipsLinger: boolean, nowMs: number): Step {
  if (lifecycle.deadlines !== undefined) return { lifecycle, actions: [] };
  const { state, times } = lifecycle;
  // Nobody has sent anything yet to a process that starts.
  const lingerMs = skipsLinger || state === "starting" ? 0 : times.lingerMs;
  const draining = { ...lifecycle, deadlines: deadlinesFrom(nowMs, { ...times, lingerMs }) };
  return { lifecycle: entering(draining, "draining", nowMs), actions: [actionsOf.draining.enter] };
}

/** Goes on for as long as something is due. */
function settled({ lifecycle, actions }: Step, nowMs: number): Step {
  const due = nextDue(lifecycle);
  if (due === undefined || due > nowMs) return { lifecycle, actions };
  const { state } = lifecycle;
  if (state === "in-flight-drain" && !lifecycle.hasAborted) {
    return settled(
      { lifecycle: { ...lifecycle, hasAborted: true }, actions: [...actions, "abort-requests"] },
      nowMs,
    );
  }
  const phase = state as ShutdownPhase; // safe: only in a phase something is due
  const { cut } = actionsOf[phase];
  const isCut = phase !== "draining";
  const late = isCut
    ? { ...lifecycle, exitCode: 1 as const, cutOff: [...lifecycle.cutOff, phase] }
    : lifecycle;
  const gone = next(late, nowMs);
  return settled(
    {
      lifecycle: gone.lifecycle,
      actions: [...actions, ...(cut === undefined ? [] : [cut]), ...gone.actions],
    },
    nowMs,
  );
}

/** The next phase, or the end. */
function next(lifecycle: Lifecycle, nowMs: number): Step {
  const phase = phases[phases.indexOf(lifecycle.state as ShutdownPhase) + 1];
  if (phase === undefined)
    return { lifecycle: { ...lifecycle, hasEnded: true }, actions: ["exit"] };
  return { lifecycle: entering(lifecycle, phase, nowMs), actions: [actionsOf[phase].enter] };
}

function entering(lifecycle: Lifecycle, state: LifecycleState, nowMs: number): Lifecycle {
  return { ...lifecycle, state, entered: { ...lifecycle.entered, [state]: nowMs } };
}

function deadlineOf(phase: ShutdownPhase, deadlines: Deadlines): number {
  switch (phase) {
    case "draining":
      return deadlines.lingerMs;
    case "in-flight-drain":
      return deadlines.drainMs;
    case "workers-stopped":
      return deadlines.workersMs;
    case "resources-closed":
      return deadlines.resourcesMs;
    case "flushed":
      return deadlines.totalMs;
  }
}

/** How long everything may take after the second signal, in milliseconds; resources get all but a tenth of it. */
const hurriedMs = 1_000;

/** The deadlines after the second signal: all of them now, but for the closing of resources. */
function hurried({ deadlines }: Lifecycle, nowMs: number): Deadlines {
  const known = deadlines as Deadlines; // safe: the first signal has set them
  const soon = (atMs: number) => Math.min(atMs, nowMs);
  const later = (atMs: number, withinMs: number) => Math.min(atMs, nowMs + withinMs);
  return {
    lingerMs: soon(known.lingerMs),
    abortMs: soon(known.abortMs),
    drainMs: soon(known.drainMs),
    workersMs: soon(known.workersMs),
    resourcesMs: later(known.resourcesMs, hurriedMs * 0.9),
    totalMs: later(known.totalMs, hurriedMs),
  };
}
