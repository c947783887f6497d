// own process: it fakes timers
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { writeHolder } from "../service/data-directory.ts";
import { acceptAttachments, attach } from "./attachments.ts";

let directory: string;
let server: Server;
let port: number;
let sockets: Socket[];
const key = "key";
const region = "eu-west-1";
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "keelson-attach-"));
  server = createServer((_request, response) => response.end("no upgrade here")).listen(
    0,
    "127.0.0.1",
  );
  sockets = [];
  server.on("connection", (socket) => sockets.push(socket));
  await once(server, "listening");
  port = (server.address() as AddressInfo).port; // it listens on TCP
  writeHolder(directory, { pid: process.pid, parentPid: 1, shared: { port, key, region } });
});
afterEach(() => {
  for (const socket of sockets) socket.destroy(); // also those that are no HTTP any more
  server.close();
  rmSync(directory, { recursive: true });
});

const accept = (idleMs: number, onIdle = vi.fn()) => ({
  onIdle,
  ...acceptAttachments(server, { key, idleMs, onIdle }),
});
const attached = async () => {
  const attachment = await attach(directory, region);
  if (attachment === undefined) throw new Error("nobody took it");
  return attachment;
};

test("a stack is idle some time after its last client has detached, and not before", async () => {
  const { onIdle } = accept(500);
  const [first, second] = [await attached(), await attached()];
  expect([first.port, first.region]).toEqual([port, region]);
  await first.detach();
  expect(onIdle).not.toHaveBeenCalled();
  await second.detach();
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
});

test("a client that attaches in time keeps the stack from becoming idle", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { onIdle } = accept(1_000);
  const next = async () => {
    const attachment = await attached();
    expect(vi.getTimerCount()).toBe(0);
    await attachment.detach();
    while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  await next();
  vi.advanceTimersByTime(999);
  await next();
  vi.advanceTimersByTime(999);
  expect(onIdle).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onIdle).toHaveBeenCalledTimes(1);
  vi.useRealTimers();
});

test("a stack without any client becomes idle too", async () => {
  const { onIdle } = accept(1);
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
});

test("a process that needs no connection counts until it leaves", async () => {
  const { onIdle, enter } = accept(0);
  const leave = enter();
  const client = await attached();
  expect(leave()).toBe(1);
  expect(leave()).toBe(1);
  expect(onIdle).not.toHaveBeenCalled();
  void client.detach();
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
});

test("when the last client's detaching ends the stack, that client waits for the end, and others do not", async () => {
  const { onIdle, enter } = accept(0);
  const leave = enter();
  const [first, second] = [await attached(), await attached()];
  leave();
  await first.detach();
  expect(onIdle).not.toHaveBeenCalled();
  let hasEnded = false;
  const ended = second.detach().then(() => {
    hasEnded = true;
  });
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasEnded).toBe(false);
  for (const socket of sockets) socket.destroy(); // as the end of its process does
  await ended;
});

test("a stack that is closing accepts no client", async () => {
  const { close, onIdle } = accept(60_000);
  close();
  expect(await attach(directory, region)).toBeUndefined();
  expect(onIdle).not.toHaveBeenCalled();
});

test("reports of the stack reach its clients", async () => {
  const { tell } = accept(60_000);
  const write = vi.fn();
  await attach(directory, region, write);
  tell("it broke\n");
  await waitFor(() => expect(String(write.mock.calls[0]?.[0])).toBe("it broke\n"));
});

test("writes reports to standard error when the client has no listener", async () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const { tell, close } = accept(60_000);
  await attached();
  tell("it broke\n");
  await waitFor(() => expect(write).toHaveBeenCalledWith(Buffer.from("it broke\n")));
  write.mockRestore();
  close();
});

test("refuses a client with the wrong key", async () => {
  const { close } = accept(60_000);
  writeHolder(directory, {
    pid: process.pid,
    parentPid: 1,
    shared: { port, key: "another", region },
  });
  expect(await attach(directory, region)).toBeUndefined();
  close();
});

test("does not attach when the region differs, or when the port has no stack or another server", async () => {
  expect(await attach(directory, "us-east-1")).toBeUndefined();
  expect(await attach(directory, region)).toBeUndefined();
  expect(await attach(directory, undefined)).toBeUndefined();
  await new Promise((resolve) => server.close(resolve));
  expect(await attach(directory, region)).toBeUndefined();
  rmSync(join(directory, "holder.json"));
  expect(await attach(directory, region)).toBeUndefined();
  expect(existsSync(directory)).toBe(true);
});

test("a broken connection counts as a client that has gone", async () => {
  const { onIdle } = accept(200);
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: keelson-stack\r\nx-keelson-key: ${key}\r\n\r\n`,
  );
  await once(socket, "data");
  socket.resetAndDestroy();
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
});

test("a client treats a broken connection as the end of the stack", async () => {
  server.on("upgrade", (_request, socket: Socket) => {
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: keelson-stack\r\n\r\n",
      () => socket.resetAndDestroy(),
    );
  });
  await (await attached()).ended;
});
