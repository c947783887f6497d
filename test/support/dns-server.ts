import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer, isIPv6, type Socket } from "node:net";

/** A server's answer to a question. */
export interface DnsAnswer {
  /** `noError` by default. */
  readonly code?: keyof typeof codes;
  readonly addresses?: readonly string[];
  /** The name is another's, whose addresses these are. */
  readonly alias?: string;
}

/** A question that a {@link DnsServer} has received. */
export interface DnsQuestion {
  readonly type: "A" | "AAAA";
  readonly name: string;
  readonly transport: "udp" | "tcp";
}

/** A name server on this machine that answers as a test has it. */
export interface DnsServer {
  /** For `setServers`. */
  readonly address: string;
  readonly asked: readonly DnsQuestion[];
  /** The names that were asked for and not answered, each once. */
  pending(): string[];
  close(): void;
}

const codes = { noError: 0, serverFailure: 2, noSuchName: 3, refused: 5 };
const types = new Map([
  [1, "A"],
  [28, "AAAA"],
] as const);
/** Size of a datagram (RFC 1035, 4.2.1); clients fetch longer answers over TCP. */
const datagramBytes = 512;

/** Starts a {@link DnsServer}. A question without an answer is never answered. */
export async function startDnsServer(
  answer: (question: DnsQuestion) => DnsAnswer | undefined | Promise<DnsAnswer | undefined>,
): Promise<DnsServer> {
  const asked: DnsQuestion[] = [];
  const pending = new Map<string, number>();
  const reply = async (
    message: Buffer,
    transport: DnsQuestion["transport"],
    send: (reply: Buffer) => void,
  ) => {
    const { name, type, end } = questionIn(message);
    const question = { type, name, transport };
    asked.push(question);
    pending.set(name, (pending.get(name) ?? 0) + 1);
    const said = await answer(question);
    if (said === undefined) return;
    pending.delete(name);
    send(answerTo(message.subarray(0, end), type, said));
  };

  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    let received: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      // Several questions may share a connection, and a chunk.
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const end = 2 + received.readUInt16BE(0);
        void reply(received.subarray(2, end), "tcp", (full) => {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(full.length);
          socket.write(Buffer.concat([length, full]));
        });
        received = received.subarray(end);
      }
    });
  });
  const sockets = new Set<Socket>();
  await once(tcp.listen(0, "127.0.0.1"), "listening");
  const { port } = tcp.address() as AddressInfo; // safe: it listens on a port
  const udp = createSocket("udp4");
  udp.on("message", (message, { port: from, address }) => {
    void reply(message, "udp", (full) => {
      const truncated = Buffer.from(full.subarray(0, 12));
      truncated.writeUInt16BE(truncated.readUInt16BE(2) | 0x0200, 2);
      truncated.writeUInt16BE(0, 6);
      const { end } = questionIn(full);
      const fits = full.length <= datagramBytes;
      udp.send(fits ? full : Buffer.concat([truncated, full.subarray(12, end)]), from, address);
    });
  });
  udp.bind(port, "127.0.0.1");
  await once(udp, "listening");
  return {
    address: `127.0.0.1:${port}`,
    asked,
    pending: () => [...pending.keys()],
    close: () => {
      udp.close();
      for (const socket of sockets) socket.destroy();
      tcp.close();
    },
  };
}

function questionIn(message: Buffer) {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = types.get(message.readUInt16BE(at + 1) as 1); // an unknown one is looked at next
  if (type === undefined) throw new Error("only A and AAAA are asked for");
  return { name: labels.join("."), type, end: at + 5 };
}

function answerTo(
  question: Buffer,
  type: DnsQuestion["type"],
  { code = "noError", addresses = [], alias }: DnsAnswer,
): Buffer {
  const fitting = addresses.filter((address) => isIPv6(address) === (type === "AAAA"));
  const header = Buffer.from(question.subarray(0, 12));
  header.writeUInt16BE(0x8180 | codes[code], 2);
  header.writeUInt16BE(fitting.length + (alias === undefined ? 0 : 1), 6);
  for (const at of [8, 10]) header.writeUInt16BE(0, at);
  const asked = Buffer.from([0xc0, 12]); // a pointer to the name of the question
  const owner = alias === undefined ? asked : encodedName(alias);
  const records = fitting.map((address) => record(owner, type === "A" ? 1 : 28, bytesOf(address)));
  if (alias !== undefined) records.unshift(record(asked, 5, encodedName(alias)));
  return Buffer.concat([header, question.subarray(12), ...records]);
}

function record(owner: Buffer, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(60, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, fixed, data]);
}

function encodedName(name: string): Buffer {
  const labels = name
    .split(".")
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function bytesOf(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split(".").map(Number));
  // Only what tests need: one gap, no IPv4 in it.
  const [head = "", tail = ""] = address.split("::");
  const groups = (text: string) =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const [before, after] = [groups(head), groups(tail)];
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 255]));
}
