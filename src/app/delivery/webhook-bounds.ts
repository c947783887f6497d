import { MustWaitError } from "../../parts/limits/must-wait.ts";

/** Of the ten messages that a worker runs at a time. */
const [mostOfTarget, mostOfTenant] = [4, 8];

/**
 * Limits the webhooks that this process sends at a time, so that a target that does not answer
 * leaves room for others. A webhook above a limit waits in the queue.
 *
 * @throws MustWaitError before `send` is called.
 */
export function boundWebhooks() {
  const running = new Map<string, number>();
  const change = (key: string, by: number) => {
    const left = (running.get(key) ?? 0) + by;
    if (left === 0) running.delete(key);
    else running.set(key, left);
  };
  return async (
    tenantId: string | undefined,
    url: string,
    send: () => Promise<void>,
  ): Promise<void> => {
    const tenant = tenantId === undefined ? "-" : `=${tenantId}`;
    // An origin never contains a blank.
    const target = `${new URL(url).origin} ${tenant}`;
    if ((running.get(target) ?? 0) >= mostOfTarget) throw new MustWaitError("webhook target");
    if ((running.get(tenant) ?? 0) >= mostOfTenant) throw new MustWaitError("webhook tenant");
    for (const key of [target, tenant]) change(key, 1);
    try {
      await send();
    } finally {
      for (const key of [target, tenant]) change(key, -1);
    }
  };
}
