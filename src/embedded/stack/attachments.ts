import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";

/** Upgrade protocol of attachments. A client keeps its connection open while it uses the stack. */
export const attachmentProtocol = "keelson-stack";
/** Header with the key from the data directory. */
export const attachmentKeyHeader = "x-keelson-key";

/** Processes that use a stack. */
export interface Attachments {
  /**
   * Counts a user without a connection. The returned function removes it and returns the number of
   * remaining users.
   */
  enter(): () => number;
  /** Sends a message to all clients, for their standard error. */
  tell(text: string): void;
  /** Rejects new clients. Attached clients see their connections close when the process ends. */
  close(): void;
}

export interface AttachmentOptions {
  /** Key that a client must present. */
  readonly key: string;
  /**
   * Time without users after which the stack stops, in milliseconds. With 0 it stops immediately,
   * and the last client to detach waits until the process ends.
   */
  readonly idleMs: number;
  /** Called after `idleMs` without users. */
  readonly onIdle: () => void;
}

/**
 * Accepts and counts the connections of clients. A killed client no longer counts, because its
 * connection closes.
 */
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
      // With 0 there is no timer: a client that attached in between would lose its stack.
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
