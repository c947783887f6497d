import { quoted } from "../../base/errors/quoted.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { QuotaChange } from "../../parts/limits/quota-change.ts";
import type { Cause } from "../../parts/messages/envelope.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { RunParts } from "../../parts/once/claimed-run.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { EffectOptions } from "../handlers/effect-options.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RunServices } from "../runtime/run-services.ts";
import type { RequestScope } from "../runtime/scope.ts";
import type { EffectCaller, EffectLedger } from "./effect-ledger.ts";

/** Effect whose row joins the commit of its run, or is stored immediately. */
export interface HeldEffect {
  readonly kind: "event" | "job" | "delivery";
  /** Type of an event, name of a job, or channel of a delivery. */
  readonly name: string;
  readonly row: OutboxRow;
  /** Time at which a delayed job is due, in epoch milliseconds. */
  readonly dueMs?: number;
  /** Stores a kept event, in addition to its outbox row. */
  readonly kept?: TransactionItem | undefined;
}

/** Change of a quota, which is not a message: it is done once its commit is written. */
export interface HeldCount {
  readonly kind: "quota";
  /** Full name of the quota. */
  readonly name: string;
  readonly change: QuotaChange;
}

/** The ledger holds the effects that join the commit. */
export interface EffectRun {
  readonly scope: RequestScope;
  readonly log: Logger;
  readonly adapters: Adapters;
  readonly runs: RunServices;
  readonly run: RunParts;
  readonly cause: Cause;
  readonly ledger: EffectLedger<HeldEffect | HeldCount>;
}

/** One call of `ctx` with an effect. */
export interface EffectCall {
  readonly run: EffectRun;
  /** Number of the commit that it joins. Absent if it happens immediately. */
  readonly attempt: number | undefined;
}

/** @throws TypeError for a wrong option; Error if no commit can take the effect any more. */
export function effectCall(
  run: EffectRun,
  caller: EffectCaller,
  [call, verb]: readonly [call: string, verb: string],
  { afterCommit = true }: EffectOptions = {},
): EffectCall {
  if (typeof afterCommit !== "boolean")
    throw new TypeError(`${call}: afterCommit is ${quoted(afterCommit)}; use true or false`);
  return { run, attempt: afterCommit ? run.ledger.start(caller, call, verb) : undefined };
}

/**
 * Derives an ID from the run, the kind, the name, and the number of earlier effects of that name.
 */
export function deriveId(call: EffectCall, kind: string, name: string): string {
  return derivedId(...idParts(call, kind, name));
}

/** Returns the parts of {@link deriveId}'s ID, and counts the effect. */
export function idParts(
  { run: { run, ledger }, attempt }: EffectCall,
  kind: string,
  name: string,
): readonly (string | number)[] {
  return attempt === undefined
    ? [run.seed(), `${kind} at once`, name, ledger.ordinalAtOnce(kind, name)]
    : [run.seed(), kind, name, ledger.ordinal(kind, name)];
}

/** Holds the effect for its commit, or stores it immediately, whatever becomes of the run. */
export async function take({ run, attempt }: EffectCall, effect: HeldEffect): Promise<void> {
  if (attempt !== undefined) return run.ledger.hold(attempt, effect);
  const { adapters, runs, log, scope } = run;
  const { tenantId } = scope.user;
  const items = itemsOf(adapters, effect);
  const token = crypto.randomUUID();
  const refused = await adapters.claims.commit({ items, token, completed: undefined, tenantId });
  if (refused !== undefined) {
    const reasons = refused.map(({ code, message }) => `${code} ${message}`.trim()).join(", ");
    throw new Error(`${effect.kind} ${effect.name} could not be stored: ${reasons}`);
  }
  await sendEffects(scope, { runs, log }, [effect]);
}

export function itemsOf(
  { outbox }: Pick<Adapters, "outbox">,
  { row, kept }: HeldEffect,
): readonly TransactionItem[] {
  return [...outbox.items(row), ...(kept === undefined ? [] : [kept])];
}

/** Longest wait for the effects, in milliseconds. The sweep sends the rest. */
const dispatchMs = 2_000;

/** Sends stored effects, and logs them. Never throws. */
export async function sendEffects(
  scope: Pick<RequestScope, "deadlineMs" | "runtime">,
  { runs, log }: Pick<EffectRun, "runs" | "log">,
  effects: readonly HeldEffect[],
): Promise<void> {
  const [events, jobs]: [OutboxRow[], OutboxRow[]] = [[], []];
  for (const { kind, name, row, dueMs } of effects) {
    const { eventId: id } = row;
    if (dueMs !== undefined) {
      const dueAt = new Date(dueMs).toISOString();
      log.info("job.scheduled", { job: name, scheduledId: id, dueAt });
      continue;
    }
    (kind === "event" ? events : jobs).push(row);
    logSent(log, { kind, name }, id);
  }
  const sending: Promise<void>[] = [];
  if (events.length > 0) sending.push(runs.outbox.dispatch(events));
  if (jobs.length > 0) sending.push(runs.sendCommitted(jobs));
  if (sending.length === 0) return;
  const { promise: timeout, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, waitWithin(scope, dispatchMs));
  await Promise.race([Promise.all(sending), timeout]).finally(() => clearTimeout(timer));
}

/** Time of the process that is kept for sending the answer, in milliseconds. */
const answerMs = 200;

/** Returns the time to wait after a commit: up to `mostMs`, and never past the run's deadline. */
export function waitWithin(
  { deadlineMs = Number.POSITIVE_INFINITY, runtime }: Pick<RequestScope, "deadlineMs" | "runtime">,
  mostMs: number,
): number {
  return Math.max(0, Math.min(mostMs, deadlineMs - answerMs - runtime.clock.now()));
}

export function logSent(
  log: Logger,
  { kind, name }: Pick<HeldEffect, "kind" | "name">,
  id: string,
): void {
  if (kind === "event") log.info("event.published", { event: name, publishedId: id });
  else if (kind === "job") log.info("job.enqueued", { job: name, enqueuedId: id });
  else log.info("delivery.enqueued", { channel: name, deliveryId: id });
}

export function misfit(call: string, what: string, problems: string): TypeError {
  return new TypeError(`${call}: ${what} does not fit its schema (${problems})`);
}
