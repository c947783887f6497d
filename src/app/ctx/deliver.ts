import { type Delivery, deliveryJob } from "../../parts/messages/delivery.ts";
import { checkPayload, wirePayload } from "../../parts/messages/envelope.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { EffectCaller } from "./effect-ledger.ts";
import { deriveId, type EffectRun, misfit } from "./effect-run.ts";
import { queuedJob } from "./enqueue.ts";

export type DeliveryMessage = Readonly<Record<string, unknown>>;

/** Sends a message to a channel with the commit of its run (`ctx.delivery.send`). */
export async function deliver(
  run: EffectRun,
  caller: EffectCaller,
  channel: string,
  message: DeliveryMessage,
  { key }: { readonly key?: string } = {},
): Promise<void> {
  const { runtime } = run.scope;
  const attempt = run.ledger.start(caller, "ctx.delivery.send", "send");
  const declaration = runtime.channels.get(channel);
  if (declaration === undefined) {
    const known = [...runtime.channels.keys()].join(", ");
    throw new Error(
      `ctx.delivery.send: there is no channel ${String(channel)}; there are ${known}`,
    );
  }
  const ownId = deriveId(run, "delivery", channel);
  if (typeof message !== "object" || message === null || Array.isArray(message))
    throw new TypeError(`ctx.delivery.send: the message for ${channel} is not an object`);
  await checkPayload(declaration.input, message, (problems) =>
    misfit("ctx.delivery.send", `the message for ${channel}`, problems),
  );
  const { tenantId } = run.cause;
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
  const job = { jobId, name: deliveryJob, payload: delivery, ...run.cause };
  const queued = await queuedJob(run, runtime.deliveryJob, job);
  const { queuedRow } = await import("../../parts/messages/due-jobs.ts");
  const row = queuedRow(runtime.clock.now(), { jobId, name: deliveryJob, tenantId, ...queued });
  run.ledger.hold(attempt, { kind: "delivery", name: channel, row });
}
