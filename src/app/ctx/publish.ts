import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { checkPayload, envelopeText, eventPayload } from "../../parts/messages/envelope.ts";
import type { EffectOptions } from "../handlers/effect-options.ts";
import type { EffectCaller } from "./effect-ledger.ts";
import {
  deriveId,
  type EffectCall,
  type EffectRun,
  effectCall,
  misfit,
  take,
} from "./effect-run.ts";

/** `ctx.publish`: publishes an event with the commit of its run, or immediately. */
export async function publish(
  run: EffectRun,
  caller: EffectCaller,
  type: string,
  payload: unknown,
  options: EffectOptions | undefined,
): Promise<void> {
  assertKnownOptions("ctx.publish", options, ["afterCommit"]);
  const call = effectCall(run, caller, ["ctx.publish", "publish"], options);
  const { registry } = run.scope.runtime.server;
  const declaration = registry.events.get(type);
  if (declaration === undefined)
    throw new Error(
      `ctx.publish: no feature of this server declares the event ${String(type)}; declare it with r.event`,
    );
  const { keptDays } = declaration;
  const eventId = idOfEvent(call, type, keptDays !== undefined);
  await checkPayload(declaration.schema, payload, (problems) =>
    misfit("ctx.publish", `the payload of ${type}`, problems),
  );
  const event = {
    kind: "shared",
    type,
    eventId,
    payload: eventPayload(type, payload),
    ...run.cause,
  } as const;
  const proof = await (await run.scope.runtime.messages.open()).signEvent(event);
  run.scope.spans?.named(eventId);
  const trace = run.scope.trace.headers();
  const text = envelopeText(event, { proof, trace });
  const { keptEvents } = run.adapters;
  // Records the day of a kept event first, so that the event is always found.
  const kept =
    keptDays === undefined
      ? undefined
      : await (keptEvents.value ?? (await keptEvents.open())).keep(event, keptDays, trace);
  const row = run.runs.outbox.row({ eventId, type, tenantId: event.tenantId }, text);
  await take(call, { kind: "event", name: type, row, kept });
}

/**
 * Returns an ID that a repeat of the run gets as well. A kept event of a request gets a random ID:
 * its client may reuse an expired idempotency key while the event is still kept.
 */
function idOfEvent(call: EffectCall, type: string, isKept: boolean): string {
  const { run, cause } = call.run;
  // Schedules and receivers cause themselves too, but nobody reuses the keys of their claims.
  const isRequest = cause.causedBy === cause.origRequestId && run.held()?.wanted.kind !== "message";
  return isKept && isRequest ? crypto.randomUUID() : deriveId(call, "event", type);
}
