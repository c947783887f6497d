import { once } from "node:events";
import { type ClientHttp2Stream, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import {
  type Bounded,
  closeAll,
  http2Client,
  mebibyte,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";
import { runs } from "../../../test/support/runs.ts";

afterEach(closeAll);

/** What is asked for: a route's pattern, and a body that is sent. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly route?: string;
  /** How long the body is. */
  readonly bodyBytes?: number;
}

const asked: readonly Asked[] = [
  { method: "GET", path: "/text", route: "/text" },
  { method: "HEAD", path: "/text", route: "/text" },
  { method: "GET", path: "/large", route: "/large" },
  { method: "HEAD", path: "/large", route: "/large" },
  { method: "GET", path: "/mebibyte", route: "/mebibyte" },
  { method: "GET", path: "/halting", route: "/halting" },
  { method: "GET", path: "/held/a", route: "/held/:name" },
  { method: "GET", path: "/nowhere" },
  { method: "DELETE", path: "/text" },
  { method: "OPTIONS", path: "/text" },
  { method: "POST", path: "/size", route: "/size", bodyBytes: 70_000 },
  { method: "POST", path: "/failing", route: "/failing", bodyBytes: 1 },
  { method: "POST", path: "/guarded", route: "/guarded", bodyBytes: 1 },
];

/** What a client does with it. */
type Manner =
  /** Reads all of the answer. */
  | "reads"
  /** The same, of a body that it announces and sends once it is told to. */
  | "waits to be told"
  | "leaves with the head half sent"
  | "leaves with the body half sent"
  | "leaves at once"
  | "leaves with the first byte";

interface Visit extends Asked {
  readonly manner: Manner;
}

/** What a client has seen. */
interface Seen {
  readonly id: string;
  readonly visit: Visit;
  /** There where the whole answer came. */
  readonly answer?: { readonly status: number; readonly bytes: number };
}

const visits: fc.Arbitrary<Visit> = fc
  .tuple(
    fc.constantFrom(...asked),
    fc.constantFrom<Manner>(
      "reads",
      "reads",
      "waits to be told",
      "leaves with the head half sent",
      "leaves with the body half sent",
      "leaves at once",
      "leaves with the first byte",
    ),
  )
  .map(([one, manner]) => ({ ...one, manner }));

/** The whole answers in what a connection of HTTP/1.1 gave. */
function answersIn(text: string, methods: readonly string[]): { status: number; bytes: number }[] {
  const answers: { status: number; bytes: number }[] = [];
  let rest = text;
  while (rest !== "") {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) break;
    const head = rest.slice(0, end).toLowerCase();
    const status = Number(head.slice(9, 12));
    rest = rest.slice(end + 4);
    if (status === 100) continue;
    const length = /content-length: (\d+)/.exec(head)?.[1];
    if (methods[answers.length] === "HEAD" || status === 204 || status === 304)
      answers.push({ status, bytes: 0 });
    else if (length !== undefined) {
      if (rest.length < Number(length)) break;
      answers.push({ status, bytes: Number(length) });
      rest = rest.slice(Number(length));
    } else {
      let bytes = 0;
      let isWhole = false;
      for (let line = rest.indexOf("\r\n"); line >= 0; line = rest.indexOf("\r\n")) {
        const size = Number.parseInt(rest.slice(0, line), 16);
        if (Number.isNaN(size) || rest.length < line + size + 4) break;
        rest = rest.slice(line + size + 4);
        bytes += size;
        isWhole = size === 0;
        if (isWhole) break;
      }
      if (!isWhole) break;
      answers.push({ status, bytes });
    }
  }
  return answers;
}

const headOf = (id: string, { method, path, bodyBytes, manner }: Visit, isLast: boolean) =>
  [
    `${method} ${path} HTTP/1.1`,
    "host: x",
    `x-request-id: ${id}`,
    ...(isLast ? ["connection: close"] : []),
    ...(bodyBytes === undefined
      ? []
      : ["content-type: application/octet-stream", `content-length: ${bodyBytes}`]),
    ...(manner === "waits to be told" && bodyBytes !== undefined ? ["expect: 100-continue"] : []),
    "\r\n",
  ].join("\r\n");

/** One connection of HTTP/1.1, which sends some requests at once; the manner is that of the last. */
async function overHttp1(
  port: number,
  ids: () => string,
  pipeline: readonly Visit[],
): Promise<Seen[]> {
  const socket: Socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let text = "";
  const began = new Promise<void>((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      resolve();
    });
    socket.on("close", () => resolve());
  });
  await once(socket, "connect");
  const sent = pipeline.map((visit, index) => ({
    id: ids(),
    visit,
    isLast: index === pipeline.length - 1,
  }));
  const last = sent.at(-1) as (typeof sent)[number]; // safe: a pipeline has at least one
  for (const { id, visit, isLast } of sent) {
    const head = headOf(id, visit, isLast);
    const { manner } = visit;
    const body = "x".repeat(visit.bodyBytes ?? 0);
    if (!isLast) socket.write(head + body);
    else if (manner === "leaves with the head half sent")
      socket.write(head.slice(0, head.length / 2));
    else if (manner === "leaves with the body half sent")
      socket.write(head + body.slice(0, body.length / 2));
    else if (manner === "waits to be told" && body !== "") {
      socket.write(head);
      const told = () => {
        if (!text.includes("100 Continue")) return;
        socket.off("data", told);
        socket.write(body);
      };
      socket.on("data", told);
    } else socket.write(head + body);
  }
  if (last.visit.manner.startsWith("leaves")) {
    if (last.visit.manner === "leaves with the first byte") await began;
    // What was written goes out first, as it does from a client that is killed.
    await new Promise((resolve) => socket.write("", resolve));
    socket.destroy();
  }
  if (!socket.closed) await once(socket, "close");
  const methods = sent.map(({ visit }) => visit.method);
  const answers = answersIn(text, methods);
  return sent.map(({ id, visit }, index) => {
    const answer = answers[index];
    return answer === undefined ? { id, visit } : { id, visit, answer };
  });
}

/** Streams of one session of HTTP/2. */
async function overHttp2(
  port: number,
  ids: () => string,
  several: readonly Visit[],
): Promise<Seen[]> {
  const session = await http2Client(port);
  const seen = await Promise.all(
    several.map(async (visit): Promise<Seen> => {
      const { method, path, bodyBytes, manner } = visit;
      const body = bodyBytes === undefined ? undefined : "x".repeat(bodyBytes);
      const id = ids();
      const stream: ClientHttp2Stream = session.request(
        {
          ":method": method,
          ":path": path,
          "x-request-id": id,
          ...(body !== undefined && { "content-type": "application/octet-stream" }),
        },
        { endStream: body === undefined },
      );
      stream.on("error", () => {});
      let status = 0;
      let bytes = 0;
      stream.on("response", (headers) => {
        status = Number(headers[":status"]);
      });
      const began = new Promise<void>((resolve) => {
        stream.on("response", () => resolve());
        stream.on("close", () => resolve());
      });
      stream.on("data", (chunk: Buffer) => {
        bytes += chunk.byteLength;
      });
      if (manner === "leaves with the body half sent" && body !== undefined)
        stream.write(body.slice(0, body.length / 2));
      else if (body !== undefined) stream.end(body);
      let isWhole = false;
      // Node's client does not always close a stream whose answer came before its body was out.
      const heard = new Promise<void>((resolve) => {
        stream.on("end", () => {
          isWhole = stream.rstCode === 0;
          if (session.destroyed) resolve();
          else session.ping(() => resolve());
        });
      });
      if (manner.startsWith("leaves")) {
        if (manner !== "leaves at once" && body === undefined) await began;
        stream.close(constants.NGHTTP2_CANCEL);
      }
      if (!stream.closed) await Promise.race([once(stream, "close"), heard]);
      return isWhole && status > 0 && stream.rstCode === 0
        ? { id, visit, answer: { status, bytes } }
        : { id, visit };
    }),
  );
  session.destroy();
  return seen;
}

/** Holds the lines against what clients have seen. */
async function compare(served: Bounded, seen: readonly Seen[]): Promise<void> {
  served.probe.letGo();
  await expect.poll(() => served.connections.known.size).toBe(0);
  await expect.poll(() => served.probe.running).toBe(0);
  const linesOf = (id: string) =>
    served.said("request.completed").filter(({ requestId }) => requestId === id);
  const answered = seen.filter(({ answer }) => answer !== undefined);
  await expect
    .poll(() => answered.filter(({ id }) => linesOf(id).length === 0).map(({ visit }) => visit))
    .toEqual([]);
  for (const { id, visit, answer } of seen) {
    const lines = linesOf(id);
    expect(lines.length, JSON.stringify(visit)).toBeLessThanOrEqual(1);
    const [line] = lines;
    if (line === undefined) continue;
    expect([line["method"], line["route"]]).toEqual([
      visit.method,
      line["status"] === 405 ? undefined : visit.route,
    ]);
    if (answer !== undefined) {
      const { status, bytes, aborted } = line;
      expect({ visit, status, bytes, aborted }).toEqual({ visit, ...answer, aborted: undefined });
    }
  }
  const traces = served.said("request.completed").map((line) => line["trace_id"]);
  expect(new Set(traces).size).toBe(traces.length);
}

test.each([
  ["HTTP/1.1, in pipelines", undefined, overHttp1, 3],
  ["HTTP/2, in sessions", tls, overHttp2, 12],
] as const)(
  "over %s, whatever clients do, each request has one line, which matches what its client saw",
  async (_name, secure, visitBy, most) => {
    const groups = fc.array(fc.array(visits, { minLength: 1, maxLength: most }), {
      minLength: 1,
      maxLength: 12,
    });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(groups, async (several) => {
        const served = await serveBounded(
          secure === undefined ? {} : { tls: secure },
          { bodyBytes: mebibyte },
          {},
        );
        try {
          const ids = () => {
            count += 1;
            return `visit-${count}`;
          };
          const seeing = Promise.all(several.map((group) => visitBy(served.port, ids, group)));
          setTimeout(served.probe.letGo, 20);
          await compare(served, (await seeing).flat());
        } finally {
          closeAll();
        }
      }),
      { numRuns: runs(100), endOnFailure: true },
    );
  },
);
