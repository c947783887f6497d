import { request } from "node:http";
import type { Socket } from "node:net";
import { isOfRegion, readHolder } from "../service/data-directory.ts";
import { attachmentKeyHeader, attachmentProtocol } from "./attachments.ts";

/** How long a stack may take to answer. */
const answerMs = 2_000;

/** A connection to a stack that other processes use as well. */
export interface Attachment {
  /** Its port on 127.0.0.1. */
  readonly port: number;
  /** What its ARNs name. */
  readonly region: string;
  /** Resolves once the connection is gone, also after {@link Attachment.detach}. */
  readonly ended: Promise<void>;
  /** Lets go: the stack ends once nobody uses it any more. */
  detach(): Promise<void>;
}

/**
 * Attaches to the stack that shares a directory; `undefined` where none does that can be used.
 *
 * @param region - what its ARNs have to name; any will do where it is `undefined`
 * @param write - gets what the stack reports
 */
export async function attach(
  directory: string,
  region: string | undefined,
  write: (text: Buffer) => void = (text) => void process.stderr.write(text),
): Promise<Attachment | undefined> {
  const shared = readHolder(directory)?.shared;
  if (!isOfRegion(shared, region)) return undefined;
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
      asking.destroy(); // somebody else's server by now, or a stack that does not know the key any more
      resolve(undefined);
    });
  });
  if (socket === undefined) return undefined;
  socket.on("error", () => socket.destroy());
  socket.on("data", write);
  const ended = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
  });
  socket.unref(); // a process that forgets to let go still ends
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
