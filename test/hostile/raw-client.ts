import { connect } from "node:net";

export interface Answered {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Sends bytes as they are, and reads all answers until the connection ends. */
export function sendRaw(port: number, bytes: string | Uint8Array): Promise<Answered[]> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
    socket.setTimeout(30_000, () => socket.destroy(new Error(`no end of the answer: ${received}`)));
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.once("error", (error) => (received === "" ? reject(error) : resolve(answers(received))));
    socket.once("close", () => resolve(answers(received)));
  });
}

/** Takes the answers of a connection apart, by their lengths. */
function answers(received: string): Answered[] {
  const found: Answered[] = [];
  for (let rest = received; rest.startsWith("HTTP/1.1 "); ) {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) break;
    const head = rest.slice(0, end);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    found.push({
      status: Number(head.slice(9, 12)),
      head,
      body: rest.slice(end + 4, end + 4 + length),
    });
    rest = rest.slice(end + 4 + length);
  }
  return found;
}
