import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";

/** What a client asks to upgrade to: a connection that stands for it, for as long as it uses the stack. */
export const attachmentProtocol = "keelson-stack";
/** The header of the key that the data directory has. */
export const attachmentKeyHeader = "x-keelson-key";

/** The processes that use a stack. */
export interface Attachments {
  /** Counts one that needs no connection, until what this returns is called, which gives how many are left. */
  enter(): () => number;
  /** Tells all clients, for their standard error. */
  tell(text: string): void;
  /** Takes no more clients. Those that are attached learn of the end once the process has ended. */
  close(): void;
}

/** Options of {@link acceptAttachments}. */
export interface AttachmentOptions {
  /** What a client has to show. */
  readonly key: string;
  /** How long nobody may use it, in milliseconds. 0 is not at all: the last client to let go waits until the process has ended. */
  readonly idleMs: number;
  /** Called once nobody has used it for that long. */
  readonly onIdle: () => void;
}

/** Takes the connections of clients on a server, and counts them: one whose process is killed is gone as well. */
export function acceptAttachments(
  server: Server,
  { key, idleMs, onIdle }: AttachmentOptions,
): Attachments {
  const attached = new Set<Duplex>();
  let [users, isClosed] = [0, false];
  let idle = setTimeout(onIdle, idleMs);
  const enter = () => {
    clearTimeout(idle);
    users += 1;
    let hasLeft = false;
    return () => {
      if (hasLeft) return users;
      hasLeft = true;
      users -= 1;
      // At once where that is allowed: a client that came in between would lose its stack.
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
    tell(text) {
      for (const socket of attached) socket.write(text);
    },
    close() {
      clearTimeout(idle);
      isClosed = true;
    },
  };
}
