import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { type Delivery, deliveryJob } from "../../parts/messages/delivery.ts";
import { asksSystem, checkPayload, wirePayload } from "../../parts/messages/envelope.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { SendOptions } from "../handlers/effect-options.ts";
import type { EffectCaller } from "./effect-ledger.ts";
import { deriveId, type EffectRun, effectCall, misfit } from "./effect-run.ts";
import { takeJob } from "./enqueue.ts";

/** Sends a message to a channel, with the commit of its run or immediately (`ctx.delivery.send`). */
export async function deliver(
  run: EffectRun,
  caller: EffectCaller,
  channel: string,
  message: unknown,
  options: SendOptions | undefined,
): Promise<{ readonly deliveryId: string }> {
  const { runtime } = run.scope;
  assertKnownOptions("ctx.delivery.send", options, ["key", "afterCommit"]);
  const { key } = options ?? {};
  const call = effectCall(run, caller, ["ctx.delivery.send", "send"], options);
  const declaration = runtime.channels.get(channel);
  if (declaration === undefined) {
    const known = [...runtime.channels.keys()].join(", ");
    throw new Error(
      `ctx.delivery.send: there is no channel ${String(channel)}; there are ${known}`,
    );
  }
  const ownId = deriveId(call, "delivery", channel);
  if (typeof message !== "object" || message === null || Array.isArray(message))
    throw new TypeError(`ctx.delivery.send: the message for ${channel} is not an object`);
  const given: unknown = key; // all objects would convert to the same string, as would missing values
  if (given !== undefined && typeof given !== "string")
    throw new TypeError(
      `ctx.delivery.send: the key for ${channel} is ${given === null ? "null" : typeof given}; use a string`,
    );
  await checkPayload(declaration.input, message, (problems) =>
    misfit("ctx.delivery.send", `the message for ${channel}`, problems),
  );
  const { tenantId } = run.cause;
  // A key from the caller identifies the delivery, regardless of the run that sends it. An anonymous
  // request does not replace a delivery of the system.
  const noTenant = asksSystem(run.cause) ? "system" : "-";
  const owner = tenantId === undefined ? noTenant : `=${tenantId}`;
  const jobId = key === undefined ? ownId : derivedId("delivery", owner, channel, key);
  const delivery: Delivery = {
    channel,
    message: wirePayload(message, `ctx.delivery.send: the message for ${channel}`),
    key: key === undefined ? ownId : `=${key}`,
  };
  const job = { jobId, name: deliveryJob, payload: delivery, ...run.cause };
  await takeJob(call, { kind: "delivery", name: channel }, runtime.deliveryJob, job);
  return { deliveryId: jobId };
}
