// Events, jobs and deliveries that an earlier process has sent, stored or consumed.
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";
import { type CheckingParty, type Line, line, type Party, patience, sent } from "./line.ts";

const make = (party: Party, body: object = {}) =>
  sent(party.host, `/things/${party.name}`, { as: party.ann, body });
const ask = (party: Party, body: object = {}) =>
  sent(party.host, `/jobs/${party.name}`, { as: party.ann, body });
const tell = (party: Party, body: object = {}) =>
  sent(party.host, `/deliveries/${party.name}`, { as: party.ann, body });

/** Number of runs of each, by all hosts. */
async function effects({ store, ann, name }: Party) {
  const [made, counted, followed, worked, paged] = await Promise.all(
    ["made", "counted", "followed", "worked", "paged"].map((what) =>
      store.effect(ann.tenantId, what, name),
    ),
  );
  return { made, counted, followed, worked, paged };
}

const none = { made: 0, counted: 0, followed: 0, worked: 0, paged: 0 };
const chain = { ...none, made: 1, counted: 1, followed: 1, worked: 1 };

/** Consumes until the queues are empty, including messages that are hidden for a moment. */
async function consume(party: CheckingParty, expected: Partial<typeof none>): Promise<void> {
  const { expect, host, store } = party;
  const drained = async () => {
    await host.drain();
    return { ...(await effects(party)), waiting: await store.waiting() };
  };
  await expect
    .poll(drained, { ...patience, interval: 100 })
    .toEqual({ ...none, ...expected, waiting: 0 });
}

const isDone = (expected: Partial<typeof none>) => (party: CheckingParty) =>
  consume(party, expected);

/** A payload that is too large to be taken for a small one by chance. */
const filling = "filling ".repeat(25_000);

export const messageLines: readonly Line[] = [
  line(
    "an event on its way is consumed once by each consumer, with what follows",
    async (party) => void (await make(party)),
    isDone(chain),
  ),
  line(
    "a large event on its way is consumed",
    async (party) => void (await make(party, { filling })),
    isDone(chain),
  ),
  line(
    "an event that was left in the outbox is dispatched and consumed once",
    async (party) => void (await party.withoutBus((host) => make({ ...party, host }))),
    async (party) => {
      await consume(party, { made: 1 });
      await party.host.sweep();
      await consume(party, chain);
      await party.host.sweep();
      await consume(party, chain);
    },
    { ageMs: 20_000 },
  ),
  line(
    "a large event that was left in the outbox is dispatched",
    async (party) => void (await party.withoutBus((host) => make({ ...party, host }, { filling }))),
    async (party) => {
      await party.host.sweep();
      await consume(party, chain);
    },
    { ageMs: 20_000 },
  ),
  line(
    "an event that was consumed is skipped when it comes again",
    async (party) => {
      await make(party);
      const message = await takeOne(party, "events");
      await party.store.send(message);
      await party.host.drain();
      return message;
    },
    async (party, message) => {
      await party.store.send(message);
      await consume(party, chain);
    },
  ),
  line(
    "an event of which one consumer has failed is consumed by that one, and enqueues the same job",
    async (party) => {
      const { world, host, name } = party;
      world.broken.add(name);
      await make(party);
      await host.drain();
      world.broken.delete(name);
    },
    async (party) => {
      const { expect, world, host, name } = party;
      world.runs.length = 0;
      await consume(party, chain);
      expect(world.runs).not.toContain(`${host.version} count ${name}`);
    },
  ),
  line(
    "a job on its way is done once",
    async (party) => void (await ask(party)),
    isDone({ worked: 1 }),
  ),
  line(
    "a job that was done is skipped when it comes again",
    async (party) => {
      await ask(party);
      const { deduplicationId, ...message } = await takeOne(party, "jobs");
      await party.store.send({ ...message, deduplicationId: `${deduplicationId}1` });
      await party.host.drain();
      return { ...message, deduplicationId: `${deduplicationId}2` };
    },
    async (party, message) => {
      await party.store.send(message);
      await consume(party, { worked: 1 });
    },
  ),
  line(
    "an equal job within 5 minutes is the same job, and one of its order stands behind it",
    async (party) => void (await ask(party, { order: "in one order" })),
    async (party) => {
      const { expect, store, name } = party;
      await ask(party, { order: "in one order" });
      const other = { ...party, name: `${name} other` };
      await ask(other, { order: "in one order" });
      const [first, ...more] = await store.receive("jobs");
      const jobs = [first, ...more].map(
        (message) => message && { name: nameOf(message.kept.body), group: message.kept.group },
      );
      expect(jobs.map((job) => job?.name)).toEqual([name, other.name]);
      expect(new Set(jobs.map((job) => job?.group)).size).toBe(1);
      for (const message of [first, ...more]) await message?.remove();
    },
  ),
  line(
    "a delivery on its way is sent once",
    async (party) => void (await tell(party)),
    async (party) => {
      await tell(party); // of the same key: it is the same
      await consume(party, { paged: 1 });
    },
  ),
  line(
    "a delivery that comes again has the ID that it had",
    async (party) => {
      await tell(party);
      const message = await takeOne(party, "jobs");
      await party.store.send({ ...message, deduplicationId: `${message.deduplicationId}1` });
      return { id: (JSON.parse(message.body) as { readonly jobId: string }).jobId };
    },
    async (party, { id }) => {
      await consume(party, { paged: 1 });
      party.expect(party.world.runs).toContain(`${party.host.version} page ${party.name} ${id}`);
    },
  ),
  line(
    "a webhook on its way is sent, signed with the tenant's secret",
    async (party) => {
      const secret = `the hook of ${party.name}`;
      const { host, operator } = party;
      await sent(host, "/config/kept:config:hook-secret", {
        method: "PUT",
        as: operator,
        body: { value: secret },
      });
      const port = portOf(party.name);
      await tell(party, { url: `http://127.0.0.1:${port}/hook` });
      return { secret, port };
    },
    async (party, { secret, port }) => {
      const { expect, host, name } = party;
      const receiver = await listen(port);
      await host.drain();
      const [request] = await receiver.close();
      const { headers = {}, body } = request ?? {};
      const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
      expect(JSON.parse(String(body))).toEqual({ name });
      expect(headers["webhook-signature"]).toBe(
        `v1,${createHmac("sha256", secret).update(signed).digest("base64")}`,
      );
    },
  ),
];

/** Takes the message out of a queue that has no other. */
async function takeOne({ store }: Party, queue: "events" | "jobs") {
  const [message, ...more] = await store.receive(queue);
  if (message === undefined || more.length > 0)
    throw new Error(`${queue} has ${more.length + (message ? 1 : 0)} messages`);
  await message.remove();
  return message.kept;
}

function nameOf(body: string): string {
  return (JSON.parse(body) as { readonly payload: { readonly name: string } }).payload.name;
}

/** A port of the receiver, which the message names: below those that systems give out, and another for each name. */
function portOf(name: string): number {
  return 20_000 + (createHash("sha256").update(name).digest().readUInt16BE() % 10_000);
}

/** Receives webhooks. */
async function listen(port: number) {
  const requests: { readonly headers: NodeJS.Dict<string | string[]>; readonly body: string }[] =
    [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // without an encoding there is nothing else
    requests.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(204, { connection: "close" }).end();
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    close: async () => {
      await new Promise((resolve) => server.close(resolve));
      return requests;
    },
  };
}
