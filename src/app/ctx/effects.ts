import { AccessDeniedError } from "../../base/errors/errors.ts";
import { assertKnownOptions } from "../../base/errors/known-options.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { isIdentifier } from "../../base/identity/claims.ts";
import type { TraceHeaders } from "../../base/request/trace.ts";
import { asksSystem, type Cause } from "../../parts/messages/cause.ts";
import { checkPayload } from "../../parts/messages/check-payload.ts";
import { type Delivery, deliveryJob } from "../../parts/messages/delivery.ts";
import { envelopeText, eventPayload } from "../../parts/messages/envelope.ts";
import { type JobMessage, jobHash, jobPayload, jobText } from "../../parts/messages/job-message.ts";
import type { KeptContent } from "../../parts/messages/kept-events.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import { wirePayload } from "../../parts/messages/wire-payload.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { RunParts } from "../../parts/once/claimed-run.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { Steps } from "../../parts/once/steps.ts";
import type { Effects } from "../handlers/effects.ts";
import type { JobDeclaration } from "../handlers/message-handlers.ts";
import type { EnqueueOptions, StepOptions } from "../handlers/pipeline-context.ts";
import { usesMessages } from "../registry/registry.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RunServices } from "../runtime/run-services.ts";
import type { RequestScope } from "../runtime/scope.ts";
import type { EffectCaller, EffectLedger } from "./effect-ledger.ts";

/** Effect that joins the commit of its run. */
export interface HeldEffect {
  readonly kind: "event" | "job" | "delivery";
  /** Type of an event, name of a job, or channel of a delivery. */
  readonly name: string;
  readonly row: OutboxRow;
  /** Item that keeps an event, in addition to its row. */
  readonly kept?: TransactionItem | undefined;
}

/** Parts of a run that its effects use. */
export interface EffectsOptions {
  readonly scope: RequestScope;
  readonly adapters: Adapters;
  readonly runs: RunServices;
  readonly run: RunParts;
  readonly cause: Omit<Cause, "originator">;
  readonly ledger: EffectLedger<HeldEffect>;
}

/**
 * Creates the effects of one run. The ledger holds the effects that join the commit. The others
 * happen immediately.
 */
export class RunEffects {
  readonly #scope: RequestScope;
  readonly #adapters: Adapters;
  readonly #runs: RunServices;
  readonly #run: RunParts;
  readonly #cause: Cause;
  readonly #ledger: EffectLedger<HeldEffect>;
  #opening: Promise<Steps> | undefined;
  #steps: Steps | undefined;

  constructor({ scope, adapters, runs, run, cause, ledger }: EffectsOptions) {
    this.#scope = scope;
    this.#adapters = adapters;
    this.#runs = runs;
    this.#run = run;
    this.#cause = { ...cause, originator: scope.isSystem ? "system" : undefined };
    this.#ledger = ledger;
  }

  /** Returns the effects for a handler or a hook. */
  of(caller: EffectCaller): Effects {
    const effects: Effects = {
      publish: (type, payload) => this.#publish(caller, type, payload),
      enqueue: (name, payload, options) => this.#enqueue(caller, name, payload, options),
      unschedule: (jobId) => this.#unschedule(jobId),
      // Safe: the channel's schema checks the message.
      deliver: (channel: string, message: unknown, options) =>
        this.#deliver(caller, channel, message as DeliveryMessage, options),
      step: (name, options, call) => this.#step(caller, name, options, call),
    };
    return this.#scope.spans?.producing(effects) ?? effects;
  }

  /**
   * Returns whether the call comes from within a step. The step would wait for a commit that waits
   * for the step.
   */
  isInStep(): boolean {
    return this.#steps?.isInside() === true;
  }

  async #publish(caller: EffectCaller, type: string, payload: unknown): Promise<void> {
    const attempt = this.#ledger.start(caller, "ctx.publish", "publish");
    const { registry } = this.#scope.runtime.server;
    const declaration = registry.events.get(type);
    if (declaration === undefined) {
      throw new Error(
        `ctx.publish: no feature of this server declares the event ${String(type)}; declare it with r.event`,
      );
    }
    const { keptDays } = declaration;
    const eventId = this.#eventId(type, keptDays !== undefined);
    await checkPayload(declaration.schema, payload, (problems) =>
      misfit("ctx.publish", `the payload of ${type}`, problems),
    );
    const event = {
      kind: "shared",
      type,
      eventId,
      payload: eventPayload(type, payload),
      ...this.#cause,
    } as const;
    const proof = await (await this.#scope.runtime.messages.open()).signEvent(event);
    this.#scope.spans?.named(eventId);
    const trace = this.#scope.trace.headers();
    const text = envelopeText(event, { proof, trace });
    const kept = keptDays === undefined ? undefined : await this.#keep(event, keptDays, trace);
    const row = this.#runs.outbox.row({ eventId, type, tenantId: event.tenantId }, text);
    this.#ledger.hold(attempt, { kind: "event", name: type, row, kept });
  }

  async #enqueue(
    caller: EffectCaller,
    name: string,
    payload: unknown,
    options: EnqueueOptions | undefined,
  ): Promise<{ readonly jobId: string }> {
    const declaration = this.#scope.runtime.server.registry.jobs.get(name);
    if (declaration === undefined) {
      throw new Error(
        `ctx.enqueue: no feature of this server declares the job ${String(name)}; declare it with r.job`,
      );
    }
    assertKnownOptions("ctx.enqueue", options, enqueueOptions);
    const cause = this.#causeFor(options?.tenantId);
    const refuse = (problems: string) => misfit("ctx.enqueue", `the payload of ${name}`, problems);
    if (options?.delaySeconds !== undefined || options?.at !== undefined) {
      const attempt = this.#ledger.start(caller, "ctx.enqueue", "enqueue what is due later");
      const counted = this.#partsOf("later", name);
      const { dueId, dueMsOf, dueRow } = await import("../../parts/messages/later.ts");
      const dueMs = dueMsOf(options, this.#scope.runtime.clock.now());
      const jobId = dueId(dueMs, ...counted);
      await checkPayload(declaration.input, payload, refuse);
      const job = { jobId, name, payload: jobPayload(name, payload), ...cause };
      // A unique key per job: a job that enqueues itself repeatedly would otherwise be dropped as a
      // duplicate.
      const { text, ...queued } = await this.#queued(
        { ...declaration, dedupKey: () => jobId },
        job,
      );
      this.#ledger.hold(attempt, {
        kind: "job",
        name,
        row: dueRow({ jobId, name, tenantId: job.tenantId, text, ...queued }),
      });
      return { jobId };
    }
    const jobId = derivedId(this.#run.seed(), "job", name, this.#ledger.ordinalAtOnce("job", name));
    await checkPayload(declaration.input, payload, refuse);
    const { text, ...queued } = await this.#queued(declaration, {
      jobId,
      name,
      payload: jobPayload(name, payload),
      ...cause,
    });
    const { jobs } = await this.#adapters.messaging.open();
    await jobs.send(text, queued);
    this.#scope.log.info("job.enqueued", { job: name, enqueuedId: jobId });
    return { jobId };
  }

  async #unschedule(jobId: string): Promise<boolean> {
    const { duePlace } = await import("../../parts/messages/later.ts");
    const place = duePlace(jobId);
    if (place === undefined) return false;
    const isTakenBack = await (await this.#adapters.dueJobs.open()).takeBack(
      place,
      this.#cause.tenantId,
    );
    if (isTakenBack) this.#scope.log.info("job.unscheduled", { unscheduledId: jobId });
    return isTakenBack;
  }

  async #deliver(
    caller: EffectCaller,
    channel: string,
    message: DeliveryMessage,
    { key }: { readonly key?: string } = {},
  ): Promise<void> {
    const { runtime } = this.#scope;
    const attempt = this.#ledger.start(caller, "ctx.delivery.send", "send");
    const declaration = runtime.channels.get(channel);
    if (declaration === undefined) {
      const known = [...runtime.channels.keys()].join(", ");
      throw new Error(
        `ctx.delivery.send: there is no channel ${String(channel)}; there are ${known}`,
      );
    }
    const ownId = this.#derive("delivery", channel);
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      throw new TypeError(`ctx.delivery.send: the message for ${channel} is not an object`);
    }
    await checkPayload(declaration.input, message, (problems) =>
      misfit("ctx.delivery.send", `the message for ${channel}`, problems),
    );
    const { tenantId } = this.#cause;
    // A key from the caller identifies the delivery, regardless of the run that sends it.
    const jobId =
      key === undefined
        ? ownId
        : derivedId("delivery", tenantId === undefined ? "-" : `=${tenantId}`, channel, key);
    const delivery: Delivery = {
      channel,
      message: wirePayload(message, `ctx.delivery.send: the message for ${channel}`),
      key: key === undefined ? ownId : `=${key}`,
    };
    const job = { jobId, name: deliveryJob, payload: delivery, ...this.#cause };
    const { text, ...queued } = await this.#queued(runtime.deliveryJob, job);
    const { queuedRow } = await import("../../parts/messages/later.ts");
    const row = queuedRow(runtime.clock.now(), {
      jobId,
      name: deliveryJob,
      tenantId,
      text,
      ...queued,
    });
    this.#ledger.hold(attempt, { kind: "delivery", name: channel, row });
  }

  async #step(
    caller: EffectCaller,
    name: string,
    options: StepOptions,
    call: (key: string) => unknown,
  ): Promise<unknown> {
    const held = this.#run.held();
    if (held === undefined) throw new Error(noClaim);
    this.#ledger.start(caller, "ctx.step", "begin a step");
    // Loaded with the first step: no other run needs it.
    this.#opening ??= import("./open-steps.ts").then(({ openSteps }) =>
      openSteps(this.#scope, this.#adapters, this.#runs, held),
    );
    this.#steps = await this.#opening;
    return this.#steps.step(name, options, call);
  }

  /** Returns the cause of a job. Only a system run may set the tenant of a job. */
  #causeFor(tenantId: string | undefined): Cause {
    if (tenantId === undefined) return this.#cause;
    if (!this.#scope.isSystem)
      throw new AccessDeniedError("ctx.enqueue for a tenant takes a run of the system");
    if (!isIdentifier(tenantId))
      throw new TypeError(`ctx.enqueue: tenantId is ${quoted(tenantId)}; use a text`);
    return { ...this.#cause, tenantId };
  }

  /** Prepares a job for its queue. */
  async #queued({ dedupKey, dedupScope, order }: QueuedJob, job: JobMessage) {
    if (!usesMessages(this.#scope.runtime.server.registry)) throw new Error(noQueue);
    const { name, tenantId, userId, payload } = job;
    const identity = { name, tenantId, userId: dedupScope === "user" ? userId : undefined };
    const known =
      dedupKey === undefined
        ? ["payload", payload]
        : ["key", keyOf("dedupKey", name, dedupKey(payload))];
    // A job from an anonymous request may have fewer rights than an equal job from the system, so
    // it does not replace that job.
    const deduplicationId = jobHash(identity, asksSystem(job) ? [...known, "system"] : known);
    const group =
      order === undefined
        ? deduplicationId
        : jobHash(identity, ["order", keyOf("order", name, order(payload))]);
    const proof = await (await this.#scope.runtime.messages.open()).signJob(job);
    this.#scope.spans?.named(job.jobId);
    const text = jobText(job, { proof, trace: this.#scope.trace.headers() });
    return { text, group, deduplicationId };
  }

  /**
   * Creates the item that keeps an event, and first records its day, so that a day with events is
   * always found.
   */
  async #keep(event: KeptContent, keptDays: number, trace: TraceHeaders): Promise<TransactionItem> {
    const store = this.#adapters.keptEvents.value ?? (await this.#adapters.keptEvents.open());
    return store.keep(event, keptDays, trace);
  }

  /**
   * Returns the ID of an event. The ID is random if the event is kept and no message caused the
   * run: a kept event must stay unique until it expires, but a client may reuse its key once the
   * claim has expired. A message keeps its ID across redeliveries, so the ID is derived.
   */
  #eventId(type: string, isKept: boolean): string {
    const { causedBy, origRequestId } = this.#cause;
    return isKept && causedBy === origRequestId ? crypto.randomUUID() : this.#derive("event", type);
  }

  /**
   * Derives an ID of this run from the kind, the name and the number of earlier effects of both.
   */
  #derive(kind: string, name: string): string {
    return derivedId(...this.#partsOf(kind, name));
  }

  #partsOf(kind: string, name: string): readonly (string | number)[] {
    return [this.#run.seed(), kind, name, this.#ledger.ordinal(kind, name)];
  }
}

type DeliveryMessage = Readonly<Record<string, unknown>>;

const enqueueOptions: readonly string[] = [
  "delaySeconds",
  "at",
  "tenantId",
] satisfies (keyof EnqueueOptions)[];

/** Options of a job that determine how it is queued. */
export type QueuedJob = Pick<JobDeclaration, "dedupKey" | "dedupScope" | "order">;

/**
 * Requires a string or number: all objects would convert to the same string, and so would missing
 * values.
 */
function keyOf(option: string, job: string, key: unknown): string {
  if (typeof key === "string" || typeof key === "number") return String(key);
  throw new TypeError(
    `${option} of ${job} gave ${key === null ? "null" : typeof key}; let it give a text`,
  );
}

const noClaim =
  "ctx.step: nothing claims this run, so that no later one would know of the step; ask for an Idempotency-Key (`once: { required: true }`), or do it in a consumer or a job";

const noQueue =
  "this server has no queue; declare an event, a job or a channel in one of its features, or set delivery.webhook in buildServer";

function misfit(call: string, what: string, problems: string): TypeError {
  return new TypeError(`${call}: ${what} does not fit its schema (${problems})`);
}
