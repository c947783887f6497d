import { request } from "node:http";
import type { Socket } from "node:net";
import { isOfRegion, readHolder } from "../service/data-directory.ts";
import { attachmentKeyHeader, attachmentProtocol } from "./attachments.ts";

const answerMs = 2_000;

export type Attachment = NonNullable<Awaited<ReturnType<typeof attach>>>;

/** Returns `undefined` if there is no usable stack. `write` receives the stack's errors. */
export async function attach(
  directory: string,
  region: string | undefined,
  write: (text: Buffer) => void = (text) => void process.stderr.write(text),
) {
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
