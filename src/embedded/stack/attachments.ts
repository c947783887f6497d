import { type IncomingMessage, request, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { readHolder, sharedOf } from "../service/data-directory.ts";

/** A client keeps the upgraded connection open while it uses the stack. */
const attachmentProtocol = "keelson-stack";
const attachmentKeyHeader = "x-keelson-key";

export type Attachments = ReturnType<typeof acceptAttachments>;

/** Calls `onIdle` after `idleMs` without a user. With 0, the last connection stays open. */
export function acceptAttachments(
  server: Server,
  { key, idleMs, onIdle }: { key: string; idleMs: number; onIdle: () => void },
) {
  const attached = new Set<Duplex>();
  let [users, isClosed] = [0, false];
  let idle = setTimeout(onIdle, idleMs);
  /** Adds a user. The result removes it and returns the number of others. */
  const enter = () => {
    clearTimeout(idle);
    users += 1;
    let hasLeft = false;
    return () => {
      if (hasLeft) return users;
      hasLeft = true;
      users -= 1;
      // A client that attached before a timer of 0 ran would lose its stack.
      if (users === 0 && idleMs === 0) onIdle();
      else if (users === 0) idle = setTimeout(onIdle, idleMs);
      return users;
    };
  };
  server.on("upgrade", ({ headers }: IncomingMessage, socket: Duplex) => {
    if (
      isClosed ||
      headers.upgrade !== attachmentProtocol ||
      headers[attachmentKeyHeader] !== key
    ) {
      socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const leave = enter();
    attached.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      attached.delete(socket);
      leave();
    });
    socket.once("end", () => {
      const left = leave();
      if (left > 0 || idleMs > 0) socket.end();
    });
    socket.resume();
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${attachmentProtocol}\r\n\r\n`,
    );
  });
  return {
    enter,
    tell(text: string) {
      for (const socket of attached) socket.write(text);
    },
    /** Rejects new clients. Connections close when the process ends. */
    close() {
      clearTimeout(idle);
      isClosed = true;
    },
  };
}

const answerMs = 2_000;

export type Attachment = NonNullable<Awaited<ReturnType<typeof attach>>>;

/** `undefined` if there is no usable stack. `write` receives the stack's errors. */
export async function attach(
  directory: string,
  region: string | undefined,
  write: (text: Buffer) => void = (text) => void process.stderr.write(text),
) {
  const shared = sharedOf(readHolder(directory), region);
  if (shared === undefined) return undefined;
  const asking = request({
    host: "127.0.0.1",
    port: shared.port,
    headers: {
      connection: "upgrade",
      upgrade: attachmentProtocol,
      [attachmentKeyHeader]: shared.key,
    },
    signal: AbortSignal.timeout(answerMs),
  });
  asking.end();
  const socket = await new Promise<Socket | undefined>((resolve) => {
    asking.once("upgrade", (_response, taken) => resolve(taken));
    asking.on("error", () => resolve(undefined));
    asking.once("response", () => {
      asking.destroy(); // another server uses the port by now, or the stack has a new key
      resolve(undefined);
    });
  });
  if (socket === undefined) return undefined;
  socket.on("error", () => socket.destroy());
  socket.on("data", write);
  const ended = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
  });
  socket.unref(); // lets a process exit without detaching
  return {
    port: shared.port,
    region: shared.region,
    ended,
    detach: async () => {
      socket.ref();
      socket.end();
      await ended;
    },
  };
}
