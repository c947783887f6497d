import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { waitFor } from "../../test/support/wait-for.ts";
import { attach } from "./attach.ts";
import { acceptAttachments } from "./attachments.ts";
import { writeHolder } from "./data-directory.ts";

let directory: string;
let server: Server;
let port: number;
const key = "key";
const region = "eu-west-1";
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "keelson-attach-"));
  server = createServer((_request, response) => response.end("no upgrade here")).listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port; // it listens on TCP
  writeHolder(directory, { pid: process.pid, parentPid: 1, shared: { port, key, region } });
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(directory, { recursive: true });
});

const accept = (idleMs: number, onIdle = vi.fn()) => ({ onIdle, ...acceptAttachments(server, { key, idleMs, onIdle }) });
const attached = async () => {
  const attachment = await attach(directory, region);
  if (attachment === undefined) throw new Error("nobody took it");
  return attachment;
};

test("a stack is idle once its last client has let go for long enough, and not before", async () => {
  const { onIdle } = accept(500);
  const [first, second] = [await attached(), await attached()];
  expect(first.port).toBe(port);
  await first.detach();
  expect(onIdle).not.toHaveBeenCalled();
  await second.detach();
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
});

test("a client that comes in time keeps it", async () => {
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

test("one that nobody ever attaches to is idle as well", async () => {
  const { onIdle } = accept(1);
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
});

test("what the stack reports reaches its clients, and the end of the stack as well", async () => {
  const { tell, close, onIdle } = accept(60_000);
  const write = vi.fn();
  const attachment = await attach(directory, region, write);
  tell("it broke\n");
  await waitFor(() => expect(String(write.mock.calls[0]?.[0])).toBe("it broke\n"));
  close();
  await attachment?.ended;
  expect(onIdle).not.toHaveBeenCalled();
});

test("without a listener of its own a report goes to the standard error", async () => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const { tell, close } = accept(60_000);
  await attached();
  tell("it broke\n");
  await waitFor(() => expect(write).toHaveBeenCalledWith(Buffer.from("it broke\n")));
  write.mockRestore();
  close();
});

test("who does not know the key is no client", async () => {
  const { close } = accept(60_000);
  writeHolder(directory, { pid: process.pid, parentPid: 1, shared: { port, key: "another", region } });
  expect(await attach(directory, region)).toBeUndefined();
  close();
});

test("nothing is attached to where the port is somebody else's by now, or nobody's, or the stack is of another region", async () => {
  expect(await attach(directory, "us-east-1")).toBeUndefined();
  expect(await attach(directory, region)).toBeUndefined();
  await new Promise((resolve) => server.close(resolve));
  expect(await attach(directory, region)).toBeUndefined();
  rmSync(join(directory, "holder.json"));
  expect(await attach(directory, region)).toBeUndefined();
  expect(existsSync(directory)).toBe(true);
});

test("a connection that breaks is a client that has gone", async () => {
  const { onIdle } = accept(200);
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: keelson-stack\r\nx-keelson-key: ${key}\r\n\r\n`,
  );
  await once(socket, "data");
  socket.resetAndDestroy();
  await waitFor(() => expect(onIdle).toHaveBeenCalledTimes(1));
});

test("a connection that breaks is for its client the end of the stack", async () => {
  server.on("upgrade", (_request, socket: Socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: keelson-stack\r\n\r\n", () =>
      socket.resetAndDestroy(),
    );
  });
  await (await attached()).ended;
});
