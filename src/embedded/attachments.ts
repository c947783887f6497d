import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";

/** What a client asks to upgrade to: a connection that stands for it, for as long as it uses the stack. */
export const attachmentProtocol = "keelson-stack";
/** The header of the key that the data directory has. */
export const attachmentKeyHeader = "x-keelson-key";

/** The clients of a stack that outlives each of them. */
export interface Attachments {
  /** Tells all of them, for their standard error. */
  tell(text: string): void;
  /** Hangs up on all of them. */
  close(): void;
}

/** Options of {@link acceptAttachments}. */
export interface AttachmentOptions {
  /** What a client has to show. */
  readonly key: string;
  /** How long nobody may be attached, in milliseconds. */
  readonly idleMs: number;
  /** Called once nobody has been attached for that long. */
  readonly onIdle: () => void;
}

/** Takes the connections of clients on a server, and counts them: one whose process is killed is gone as well. */
export function acceptAttachments(server: Server, { key, idleMs, onIdle }: AttachmentOptions): Attachments {
  const attached = new Set<Duplex>();
  let idle = setTimeout(onIdle, idleMs);
  const detach = (socket: Duplex) => {
    if (attached.delete(socket) && attached.size === 0) idle = setTimeout(onIdle, idleMs);
  };
  server.on("upgrade", ({ headers }: IncomingMessage, socket: Duplex) => {
    if (headers.upgrade !== attachmentProtocol || headers[attachmentKeyHeader] !== key) {
      socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    clearTimeout(idle);
    attached.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => detach(socket));
    socket.once("end", () => socket.end());
    socket.resume();
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${attachmentProtocol}\r\n\r\n`);
  });
  return {
    tell(text) {
      for (const socket of attached) socket.write(text);
    },
    close() {
      clearTimeout(idle);
      for (const socket of attached) socket.destroy();
    },
  };
}
