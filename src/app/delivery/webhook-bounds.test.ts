import { expect, test } from "vitest";
import { MustWaitError } from "../../parts/limits/must-wait.ts";
import { boundWebhooks } from "./webhook-bounds.ts";

function start() {
  const bounds = boundWebhooks();
  const held = Promise.withResolvers<void>();
  let sent = 0;
  const send = (tenantId: string | undefined, url: string) =>
    bounds(tenantId, url, async () => {
      sent += 1;
      await held.promise;
    });
  return { send, held, sent: () => sent };
}

test("four webhooks at a time go to one target of a tenant, others wait", async () => {
  const { send, held, sent } = start();
  const running = [1, 2, 3, 4].map((n) => send("acme", `https://dead.example/${n}`));
  await expect(send("acme", "https://dead.example/5")).rejects.toThrow(
    new MustWaitError("webhook target"),
  );
  // Another target, and the same target of another tenant.
  running.push(send("acme", "https://alive.example/"), send("globex", "https://dead.example/"));
  expect(sent()).toBe(6);
  held.resolve();
  await Promise.all(running);
  await send("acme", "https://dead.example/6");
  expect(sent()).toBe(7);
});

test("eight webhooks at a time are of one tenant, others wait", async () => {
  const { send, held } = start();
  const running = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => send("acme", `https://t${n % 4}.example/`));
  await expect(send("acme", "https://t9.example/")).rejects.toMatchObject({
    name: "MustWaitError",
    limit: "webhook tenant",
    message: "the limit webhook tenant is reached",
  });
  running.push(send(undefined, "https://t1.example/"));
  held.resolve();
  await Promise.all(running);
});

test("a webhook that fails makes room", async () => {
  const bounds = boundWebhooks();
  const fail = () =>
    bounds("acme", "https://t.example/", () => Promise.reject(new Error("refused")));
  for (let time = 0; time < 6; time++) await expect(fail()).rejects.toThrow("refused");
});
