import type { TraceHeaders } from "../context/trace.ts";
import type { Effects } from "../declare/effects.ts";
import type { JobDeclaration } from "../declare/message-handlers.ts";
import type { EnqueueOptions, StepOptions } from "../declare/pipeline-context.ts";
import { usesMessages } from "../declare/registry.ts";
import { AccessDeniedError } from "../errors/errors.ts";
import { quoted } from "../errors/quoted.ts";
import type { Cause } from "../events/cause.ts";
import { checkPayload } from "../events/check-payload.ts";
import { type Delivery, deliveryJob } from "../events/delivery.ts";
import { envelopeText, eventPayload } from "../events/envelope.ts";
import { type JobMessage, jobHash, jobPayload, jobText } from "../events/job-message.ts";
import type { KeptContent } from "../events/kept-events.ts";
import type { OutboxRow } from "../events/outbox.ts";
import { wirePayload } from "../events/wire-payload.ts";
import { isIdentifier } from "../identity/claims.ts";
import { saysNotDone, type WriteAnswer } from "../once/answer.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import { derivedId } from "../once/derived-id.ts";
import type { RunParts } from "../once/once-run.ts";
import { createRunCommit } from "../once/run-commit.ts";
import type { Steps } from "../once/steps.ts";
import type { Adapters } from "./adapters.ts";
import type { Runs } from "./runs.ts";
import type { RequestScope } from "./scope.ts";

/** How long an answer waits for its events to be dispatched, in milliseconds; they arrive all the same. */
const dispatchMs = 2_000;

/** Creates the {@link Effects} of one run. */
export function createEffects(scope: RequestScope, adapters: Adapters, runs: Runs, run: RunParts, cause: Cause): Effects {
  const effects = new RunEffects(scope, adapters, runs, run, cause);
  return scope.spans?.producing(effects) ?? effects;
}

class RunEffects implements Effects {
  readonly #scope: RequestScope;
  readonly #adapters: Adapters;
  readonly #runs: Runs;
  readonly #run: RunParts;
  readonly #cause: Cause;
  readonly #held: OutboxRow[] = [];
  /** What keeps events, beside their rows in the outbox. */
  readonly #kept: TransactionItem[] = [];
  /** Jobs that are due later. */
  readonly #waiting: OutboxRow[] = [];
  readonly #ordinals = new Map<string, number>();
  #hasSettled = false;
  #steps: Promise<Steps> | undefined;

  constructor(scope: RequestScope, adapters: Adapters, runs: Runs, run: RunParts, cause: Cause) {
    this.#scope = scope;
    this.#adapters = adapters;
    this.#runs = runs;
    this.#run = run;
    this.#cause = cause;
  }

  async publish(type: string, payload: unknown): Promise<void> {
    const { registry } = this.#scope.runtime.server;
    const declaration = registry.events.get(type);
    if (declaration === undefined) {
      throw new Error(`ctx.publish: no feature of this server declares the event ${String(type)}; declare it with r.event`);
    }
    const { keptDays } = declaration;
    const eventId = this.#eventId(type, keptDays !== undefined);
    await checkPayload(declaration.schema, payload, (problems) => misfit("ctx.publish", `the payload of ${type}`, problems));
    const event = { kind: "shared", type, eventId, payload: eventPayload(type, payload), ...this.#cause } as const;
    const proof = await (await this.#scope.runtime.messages.open()).signEvent(event);
    this.#scope.spans?.named(eventId);
    const trace = this.#scope.trace.headers();
    const text = envelopeText(event, { proof, trace });
    const kept = keptDays === undefined ? [] : [await this.#keep(event, keptDays, trace)];
    this.#assertOpen("ctx.publish", "publish");
    this.#held.push(this.#runs.outbox.row({ eventId, type, tenantId: event.tenantId }, text));
    this.#kept.push(...kept);
  }

  async enqueue(name: string, payload: unknown, options?: EnqueueOptions): Promise<{ readonly jobId: string }> {
    const declaration = this.#scope.runtime.server.registry.jobs.get(name);
    if (declaration === undefined) {
      throw new Error(`ctx.enqueue: no feature of this server declares the job ${String(name)}; declare it with r.job`);
    }
    const cause = this.#causeFor(options?.tenantId);
    const refuse = (problems: string) => misfit("ctx.enqueue", `the payload of ${name}`, problems);
    if (options !== undefined) {
      const { dueId, dueMsOf, dueRow } = await import("../events/later.ts");
      const dueMs = dueMsOf(options, this.#scope.runtime.clock.now());
      if (dueMs !== undefined) {
        const jobId = dueId(dueMs, ...this.#partsOf("later", name));
        await checkPayload(declaration.input, payload, refuse);
        const job = { jobId, name, payload: jobPayload(name, payload), ...cause };
        // One of its own: what enqueues itself again and again would otherwise be dropped as its own repeat.
        const { text, ...queued } = await this.#queued({ ...declaration, dedupKey: () => jobId }, job);
        this.#assertOpen("ctx.enqueue", "enqueue what is due later");
        this.#waiting.push(dueRow({ jobId, name, tenantId: job.tenantId, text, ...queued }));
        return { jobId };
      }
    }
    const jobId = this.#derive("job", name);
    await checkPayload(declaration.input, payload, refuse);
    await this.#send(declaration, { jobId, name, payload: jobPayload(name, payload), ...cause });
    this.#scope.log.info("job.enqueued", { job: name, enqueuedId: jobId });
    return { jobId };
  }

  async unschedule(jobId: string): Promise<boolean> {
    const { duePlace } = await import("../events/later.ts");
    const place = duePlace(jobId);
    if (place === undefined) return false;
    const isTakenBack = await (await this.#adapters.dueJobs.open()).takeBack(place, this.#cause.tenantId);
    if (isTakenBack) this.#scope.log.info("job.unscheduled", { unscheduledId: jobId });
    return isTakenBack;
  }

  async deliver(
    channel: string,
    message: Readonly<Record<string, unknown>>,
    { key }: { readonly key?: string } = {},
  ): Promise<void> {
    const declaration = this.#scope.runtime.channels.get(channel);
    if (declaration === undefined) {
      const known = [...this.#scope.runtime.channels.keys()].join(", ");
      throw new Error(`ctx.delivery.send: there is no channel ${String(channel)}; there are ${known}`);
    }
    const ownId = this.#derive("delivery", channel);
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      throw new TypeError(`ctx.delivery.send: the message for ${channel} is not an object`);
    }
    await checkPayload(declaration.input, message, (problems) =>
      misfit("ctx.delivery.send", `the message for ${channel}`, problems),
    );
    const { tenantId } = this.#cause;
    // A key of the caller's makes it one and the same wherever it comes from.
    const jobId = key === undefined ? ownId : derivedId("delivery", tenantId === undefined ? "-" : `=${tenantId}`, channel, key);
    const delivery: Delivery = {
      channel,
      message: wirePayload(message, `ctx.delivery.send: the message for ${channel}`),
      key: key === undefined ? ownId : `=${key}`,
    };
    await this.#send(this.#scope.runtime.deliveryJob, { jobId, name: deliveryJob, payload: delivery, ...this.#cause });
    this.#scope.log.info("delivery.enqueued", { channel, deliveryId: jobId });
  }

  async step(name: string, options: StepOptions, call: (key: string) => unknown): Promise<unknown> {
    const held = this.#run.held();
    if (held === undefined) throw new Error(noClaim);
    // Loaded with the first step: no other run needs it.
    this.#steps ??= import("./open-steps.ts").then(({ openSteps }) => openSteps(this.#scope, this.#adapters, this.#runs, held));
    return (await this.#steps).step(name, options, call);
  }

  commit(items: readonly TransactionItem[], answer: WriteAnswer): Promise<void> {
    return this.#commit(this.#run.commit, items, answer);
  }

  async settle(answer: () => WriteAnswer, joining?: () => Promise<readonly TransactionItem[]>): Promise<void> {
    if (!this.#run.hasCommitted() && (this.#held.length + this.#waiting.length > 0 || joining !== undefined)) {
      const given = answer();
      const items = saysNotDone(given) ? undefined : ((await joining?.()) ?? []);
      if (items !== undefined && this.#held.length + this.#waiting.length + items.length > 0) {
        // One with cookies is never stored, so the claim is released: its events go by themselves.
        await this.#commit(given.cookies.length === 0 ? this.#run.commit : this.#unclaimedCommit, items, given);
      }
    }
    this.#hasSettled = true;
  }

  async #commit(commit: RunParts["commit"], items: readonly TransactionItem[], answer: WriteAnswer): Promise<void> {
    const rows = this.#held;
    const stored = [...rows, ...this.#waiting].map((row) => this.#adapters.outbox.item(row));
    await commit(items, answer, [...stored, ...this.#kept]);
    for (const { type, eventId, sort } of this.#waiting) {
      const dueAt = new Date(Number(sort.slice(0, sort.indexOf("#")))).toISOString();
      this.#scope.log.info("job.scheduled", { job: type, scheduledId: eventId, dueAt });
    }
    await this.#dispatch(rows);
  }

  /** Where a job comes from: a run of the system may enqueue it for a tenant. A message has no headers. */
  #causeFor(tenantId: string | undefined): Cause {
    if (tenantId === undefined) return this.#cause;
    const { headers, user } = this.#scope;
    if (headers !== undefined || user.tenantId !== undefined) {
      throw new AccessDeniedError("ctx.enqueue for a tenant takes a run of the system");
    }
    if (!isIdentifier(tenantId)) throw new TypeError(`ctx.enqueue: tenantId is ${quoted(tenantId)}; use a text`);
    return { ...this.#cause, tenantId };
  }

  /** A commit apart from the claim. */
  readonly #unclaimedCommit: RunParts["commit"] = (...given) => {
    const { clock } = this.#scope.runtime;
    const { pause } = this.#runs.once;
    const { tenantId } = this.#cause;
    const parts = { claim: undefined, tenantId, cipher: undefined, toStored: undefined, signal: undefined };
    return createRunCommit({ store: this.#adapters.claims, clock, pause, ...parts }).commit(...given);
  };

  /** Dispatches what was committed, and waits for it; where the bus is slow, no longer than a moment. */
  async #dispatch(rows: readonly OutboxRow[]): Promise<void> {
    if (rows.length === 0) return;
    for (const { type, eventId } of rows) this.#scope.log.info("event.published", { event: type, publishedId: eventId });
    const dispatched = this.#runs.outbox.dispatch(rows);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, dispatchMs);
    });
    await Promise.race([dispatched, timeout]).finally(() => clearTimeout(timer));
  }

  async #send(declaration: QueuedJob, job: JobMessage): Promise<void> {
    const { text, ...queued } = await this.#queued(declaration, job);
    const { jobs } = await this.#adapters.messaging.open();
    await jobs.send(text, queued);
  }

  /** A job as it goes into the queue. */
  async #queued({ dedupKey, dedupScope, order }: QueuedJob, job: JobMessage) {
    if (!usesMessages(this.#scope.runtime.server.registry)) throw new Error(noQueue);
    const { name, tenantId, userId, payload } = job;
    const identity = { name, tenantId, userId: dedupScope === "user" ? userId : undefined };
    const known = dedupKey === undefined ? ["payload", payload] : ["key", keyOf("dedupKey", name, dedupKey(payload))];
    const deduplicationId = jobHash(identity, known);
    const group = order === undefined ? deduplicationId : jobHash(identity, ["order", keyOf("order", name, order(payload))]);
    const proof = await (await this.#scope.runtime.messages.open()).signJob(job);
    this.#scope.spans?.named(job.jobId);
    const text = jobText(job, { proof, trace: this.#scope.trace.headers() });
    return { text, group, deduplicationId };
  }

  /** What joins the commit is asked for before it. */
  #assertOpen(call: string, verb: string): void {
    if (this.#hasSettled || this.#run.hasCommitted())
      throw new Error(`${call}: the run has committed; ${verb} before ctx.commit, and in a hook before \`after\``);
  }

  /** Makes what keeps an event, and notes its day before: a day with an event is always found. */
  async #keep(event: KeptContent, keptDays: number, trace: TraceHeaders): Promise<TransactionItem> {
    const store = this.#adapters.keptEvents.value ?? (await this.#adapters.keptEvents.open());
    return store.keep(event, keptDays, trace);
  }

  /**
   * A kept event is told from others for as long as it is kept, and a client may use its key again once the claim has expired:
   * where no message is behind the run, the ID is random. A message is the same one whenever it is redelivered.
   */
  #eventId(type: string, isKept: boolean): string {
    const { causedBy, origRequestId } = this.#cause;
    return isKept && causedBy === origRequestId ? crypto.randomUUID() : this.#derive("event", type);
  }

  /** Derives an ID of this run from the kind, the name and how many of them came before. */
  #derive(kind: string, name: string): string {
    return derivedId(...this.#partsOf(kind, name));
  }

  #partsOf(kind: string, name: string): readonly (string | number)[] {
    const counted = `${kind} ${name}`;
    const ordinal = this.#ordinals.get(counted) ?? 0;
    this.#ordinals.set(counted, ordinal + 1);
    return [this.#run.seed(), kind, name, ordinal];
  }
}

/** What is asked of a job that is enqueued. */
export type QueuedJob = Pick<JobDeclaration, "dedupKey" | "dedupScope" | "order">;

/** As text: objects would all be one, and so would what is absent. */
function keyOf(option: string, job: string, key: unknown): string {
  if (typeof key === "string" || typeof key === "number") return String(key);
  throw new TypeError(`${option} of ${job} gave ${key === null ? "null" : typeof key}; let it give a text`);
}

const noClaim =
  "ctx.step: nothing claims this run, so that no later one would know of the step; ask for an Idempotency-Key (`once: { required: true }`), or do it in a consumer or a job";

const noQueue = "this server has no queue; declare an event, a job or a channel in one of its features";

function misfit(call: string, what: string, problems: string): TypeError {
  return new TypeError(`${call}: ${what} does not fit its schema (${problems})`);
}
