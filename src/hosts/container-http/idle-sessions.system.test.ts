import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { afterEach, expect, test } from "vitest";
import {
  cert,
  closeAll,
  frame,
  getOf,
  http2Client,
  preface,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";

afterEach(closeAll);

test("closes an idle HTTP/2 session after a request that outlived keepAliveTimeoutMs", async () => {
  const { port, connections, said } = await serveBounded({
    tls,
    keepAliveTimeoutMs: 4_000, // idle sessions close after it, so a request has to arrive before
    writeTimeoutMs: 5_000,
  });
  const stall = async () => {
    const session = await http2Client(port, { settings: { initialWindowSize: 0 } });
    session.request({ ":path": "/text" }).on("error", () => {});
  };
  await Promise.all([1, 2, 3, 4, 5].map(stall));
  await expect.poll(() => said("response.stalled").length).toBe(5);

  await expect.poll(() => connections.known.size).toBe(0);
});

test("closes an idle HTTP/2 session after a slow handler has answered", async () => {
  const { port, connections, probe, runtime } = await serveBounded({
    tls,
    keepAliveTimeoutMs: 4_000,
  });
  const session = await http2Client(port);
  const stream = session.request({ ":path": "/held/a" });
  const sinceMs = performance.now();
  await expect.poll(() => probe.began === 1 && performance.now() - sinceMs > 5_000).toBe(true);
  probe.letGo();
  expect((await stream.toArray()).join("")).toBe('{"name":"a"}');
  expect(runtime.lifecycle.draining.aborted).toBe(false);

  await expect.poll(() => connections.known.size).toBe(0);
});

test("closes an idle HTTP/2 session whose client keeps its side of the connection open", async () => {
  const { port, connections, probe } = await serveBounded({ tls, keepAliveTimeoutMs: 1_000 });
  probe.letGo();
  const options = { port, host: "localhost", ca: cert, ALPNProtocols: ["h2"], allowHalfOpen: true }; // which the types do not know
  const socket = connectTls(options);
  socket.on("error", () => {}).resume();
  await once(socket, "secureConnect");
  socket.write(Buffer.concat([preface(), frame(1, 5, 1, getOf("/text"))]));
  await once(socket, "end");
  expect(socket.writable).toBe(true);

  await expect
    .poll(() => connections.known.size)
    .toBe(0)
    .finally(() => socket.destroy());
});
