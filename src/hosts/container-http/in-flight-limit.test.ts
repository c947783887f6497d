import { Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import {
  closeAll,
  frame,
  getOf,
  http2Client,
  mebibyte,
  preface,
  rawClient,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";
import { holdBack, maxInFlight } from "./in-flight-limit.ts";

afterEach(closeAll);

const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const names = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => String(from + index));
/** Gives what is under way the time of some requests. */
async function othersAreServed(port: number): Promise<void> {
  for (let times = 0; times < 20; times++)
    await (await fetch(`http://127.0.0.1:${port}/text`)).text();
}
const answered = (got: string) => [...got.matchAll(/{"name":"(\d+)"}/g)].map(([, name]) => name);

test.each([
  ["in the clear", undefined],
  ["over TLS", "http/1.1"],
] as const)(
  "answers 1,000 pipelined requests in order, running 100 at once, %s",
  async (_name, protocol) => {
    const { port, probe } = await serveBounded(protocol === undefined ? {} : { tls });
    const client = await rawClient(
      port,
      names(0, 1_000)
        .map((name) => ask(`/held/${name}`))
        .join(""),
      protocol,
    );
    await expect.poll(() => probe.began).toBe(maxInFlight);
    client.socket.write(
      names(1_000, 6_000)
        .map((name) => ask(`/held/${name}`))
        .join(""),
    ); // more than one read brings
    probe.letGo();

    await expect.poll(() => answered(client.got()).length).toBe(6_000);
    expect(answered(client.got())).toEqual(names(0, 6_000));
    expect(probe.most).toBe(maxInFlight);
  },
);

test("runs 100 pipelined requests of all connections at once, besides the first of each connection", async () => {
  const { port, probe } = await serveBounded();
  const requests = names(0, 150).map((name) => ask(`/held/${name}`));
  const [first, second] = [
    await rawClient(port, requests.join("")),
    await rawClient(port, requests.join("")),
  ];
  await expect.poll(() => probe.began).toBe(maxInFlight + 2);
  await othersAreServed(port);
  expect(probe.began).toBe(maxInFlight + 2);
  probe.letGo();

  await expect
    .poll(() => [first, second].map((client) => answered(client.got()).length))
    .toEqual([150, 150]);
});

test("reads nothing more while requests wait", async () => {
  const { port, probe, container } = await serveBounded();
  await rawClient(
    port,
    names(0, 40_000)
      .map((name) => ask(`/held/${name}`))
      .join(""),
  );
  await expect.poll(() => probe.began).toBe(maxInFlight);
  const waiting = container.drain.underWay().count;
  await othersAreServed(port);

  expect(container.drain.underWay().count).toBe(waiting);
  expect(waiting).toBeLessThan(5_000);
});

test("reads the body of a waiting request in its turn", async () => {
  const { port, probe } = await serveBounded();
  const body = "x".repeat(500_000);
  const client = await rawClient(
    port,
    `${names(0, 150)
      .map((name) => ask(`/held/${name}`))
      .join(
        "",
      )}POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 500000\r\n\r\n${body}${ask("/text")}`,
  );
  await expect.poll(() => probe.began).toBe(maxInFlight);
  probe.letGo();

  await expect.poll(client.got).toMatch(/"bytes":500000.*[\s\S]*{"text":"text"}$/);
});

test("unread responses keep further requests of their connection from running", async () => {
  const { port, probe } = await serveBounded();
  const client = await rawClient(port);
  client.socket.pause();
  client.socket.write(ask("/mebibyte").repeat(150));
  await expect.poll(() => probe.began).toBeGreaterThan(0);
  await othersAreServed(port);

  expect(probe.began).toBeLessThanOrEqual(maxInFlight + 20); // what socket buffers take
  client.socket.resume();
  await expect.poll(client.bytes).toBeGreaterThan(150 * mebibyte);
});

test("when a client has gone, its waiting requests do not run, and the running ones are aborted", async () => {
  const { port, probe, connections } = await serveBounded();
  const client = await rawClient(
    port,
    names(0, 300)
      .map((name) => ask(`/held/${name}`))
      .join(""),
  );
  await expect.poll(() => probe.began).toBe(maxInFlight);
  const requests = [...connections.known.values()].flatMap((connection) => [
    ...connection.requests,
  ]);
  client.socket.destroy();
  for (const [socket] of connections.known) socket.destroy(); // nothing is read that would say so
  await expect.poll(() => connections.known.size).toBe(0);
  probe.letGo();
  await expect.poll(() => probe.running).toBe(0);

  expect(probe.began).toBe(maxInFlight);
  expect(requests.filter(({ signal }) => !signal.aborted)).toEqual([]);
});

test("draining: answers all waiting pipelined requests, and closes the connection with the last response", async () => {
  const { port, probe, runtime } = await serveBounded();
  const client = await rawClient(
    port,
    names(0, 300)
      .map((name) => ask(`/held/${name}`))
      .join(""),
  );
  await expect.poll(() => probe.began).toBe(maxInFlight);
  runtime.lifecycle.drain();
  probe.letGo();
  await client.closed;

  expect(answered(client.got())).toEqual(names(0, 300));
  expect(client.got().match(/connection: close/gi)).toHaveLength(1);
});

test("after resets of HTTP/2 streams, at most 100 handlers run, and reset streams that had to wait never do", async () => {
  const { port, probe, connections } = await serveBounded({ tls });
  const client = await rawClient(port, preface(), "h2");
  const send = (from: number, to: number, frameOf: (id: number) => Buffer) =>
    client.socket.write(
      Buffer.concat(names(from, to).map((name) => frameOf(2 * Number(name) + 1))),
    );
  const open = (id: number) => frame(1, 5, id, getOf("/held/a"));
  const reset = (id: number) => frame(3, 0, id, Buffer.from([0, 0, 0, 8]));
  const openStreams = () =>
    [...connections.known.values()].flatMap(({ requests }) => [...requests]).length;
  const isOpen = (count: number) => expect.poll(openStreams).toBe(count);
  for (const [from, to] of [
    [0, 100],
    [100, 200],
    [200, 300],
  ] as const) {
    send(from, to, open);
    await isOpen(100);
    send(from, to, reset);
    await isOpen(0);
  }
  send(300, 400, (id) => Buffer.concat([open(id), reset(id)]));
  client.socket.write(frame(1, 5, 801, getOf("/held/b")));
  await isOpen(1);
  expect(probe.began).toBe(maxInFlight);
  probe.letGo();

  await expect.poll(client.got).toContain('{"name":"b"}');
  expect([probe.most, probe.began]).toEqual([maxInFlight, maxInFlight + 1]);
});

test("runs 100 HTTP/2 streams at once, and the others after them", async () => {
  const { port, probe } = await serveBounded({ tls });
  const session = await http2Client(port);
  const answers = names(0, 250).map(async (name) => {
    const stream = session.request({ ":path": `/held/${name}` });
    return JSON.parse((await stream.toArray()).join("")).name;
  });
  await expect.poll(() => probe.began).toBe(maxInFlight);
  probe.letGo();

  expect(await Promise.all(answers)).toEqual(names(0, 250));
  expect(probe.most).toBe(maxInFlight);
});

test("resumes a socket held back twice only when both holds are released", () => {
  const socket = new Socket();
  const [first, second] = [holdBack(socket), holdBack(socket)];
  first(false);
  socket.resume();
  expect(socket.isPaused()).toBe(true);
  second();

  expect(socket.isPaused()).toBe(false);
});
