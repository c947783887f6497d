import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { freePort } from "./free-port.ts";

// Runs programs as Lambda runs Web Functions, as AWS's pages describe it. If they do not describe a case, it does the worse.

/** A program that runs as one environment of a Web Function. */
export interface WebFunctionProcess {
  readonly port: number;
  readonly logs: readonly Record<string, unknown>[];
  /** Output that is not a log record. */
  readonly text: () => string;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Sends SIGTERM, and SIGKILL after `killMs`. Requests may still be in flight. */
  stop(): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/**
 * Time from SIGTERM to SIGKILL, in milliseconds. Lambda gives a second. A busy machine may need more, and the process ends in
 * time by its own timers: without them it would take 40 seconds, as a container may.
 */
const killMs = 10_000;

/** Starts a program with Lambda's variables and no others but `env`, and waits until it listens. */
export async function startWebFunction(
  program: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<WebFunctionProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, program, {
    env: {
      PATH: process.env["PATH"],
      AWS_LAMBDA_HTTP_ENDPOINT: `127.0.0.1:${port}`,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_SESSION_TOKEN: "test",
      AWS_LAMBDA_METADATA_API: "127.0.0.1:9001",
      AWS_LAMBDA_METADATA_TOKEN: "token",
      AWS_LAMBDA_INITIALIZATION_TYPE: "native-http",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  const { logs, text } = recordsOf(child);
  while (!(await accepts(port))) {
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return {
    port,
    logs,
    text,
    exited,
    stop: async () => {
      child.kill("SIGTERM");
      const kill = setTimeout(() => child.kill("SIGKILL"), killMs);
      const exit = await exited;
      clearTimeout(kill);
      return exit;
    },
  };
}

async function accepts(port: number): Promise<boolean> {
  const { connect } = await import("node:net");
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

function recordsOf({ stdout, stderr }: ChildProcess) {
  const logs: Record<string, unknown>[] = [];
  let [text, rest] = ["", ""];
  stdout?.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("{")) logs.push(JSON.parse(line) as Record<string, unknown>);
      else text += `${line}\n`;
    }
  });
  stderr?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  return { logs, text: () => text };
}

/** The front between clients and the environments of a Web Function. */
export interface WebFunctionFront {
  readonly port: number;
  /** Routes requests to an environment too, up to 64 at a time. */
  add(to: WebFunctionProcess): void;
  /** Routes no further request to it. */
  remove(from: WebFunctionProcess): void;
  close(): Promise<void>;
}

/** The default of `MaxConcurrencyPerEnvironment`. */
const mostRequests = 64;

export async function startWebFunctionFront(): Promise<WebFunctionFront> {
  const environments = new Map<WebFunctionProcess, number>();
  const waiting: (() => void)[] = [];
  const agent = new Agent({ keepAlive: true });
  const place = async (): Promise<WebFunctionProcess> => {
    for (;;) {
      const [chosen] = [...environments]
        .filter(([, count]) => count < mostRequests)
        .sort(([, one], [, other]) => one - other);
      if (chosen !== undefined) {
        environments.set(chosen[0], chosen[1] + 1);
        return chosen[0];
      }
      await new Promise<void>((resolve) => void waiting.push(resolve));
    }
  };
  const server = createServer(async (incoming, outgoing) => {
    const id = crypto.randomUUID();
    if (!methods.has(incoming.method ?? "")) {
      outgoing.writeHead(400, { "lambda-web-request-id": id }).end();
      return;
    }
    const body: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) body.push(chunk);
    const chosen = await place();
    await forward(agent, chosen.port, id, incoming, Buffer.concat(body), outgoing);
    const count = environments.get(chosen);
    if (count !== undefined) environments.set(chosen, count - 1);
    waiting.shift()?.();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port, // safe: it listens on a port
    add: (to) => {
      environments.set(to, 0);
      for (const resolve of waiting.splice(0)) resolve();
    },
    remove: (from) => void environments.delete(from),
    close: async () => {
      agent.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const methods: ReadonlySet<string> = new Set([
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "DELETE"],
]);

/** Headers that do not reach the program, in addition to `lambda-web-*` and the names in `Connection`. */
const removed: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "upgrade", "expect", "te", "trailer", "transfer-encoding"],
  ...["proxy-authenticate", "proxy-authorization", "proxy-connection"],
  ...["x-real-ip", "x-http-method-override", "x-http-method", "x-method-override"],
]);

/** Forwards a request like a front of Web Functions, on a separate connection. */
export async function forwardToWebFunction(
  port: number,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const body: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) body.push(chunk);
  const id = crypto.randomUUID();
  await forward(undefined, port, id, incoming, Buffer.concat(body), outgoing);
}

/** Sends the whole body before it reads any of the response. */
function forward(
  agent: Agent | undefined,
  port: number,
  id: string,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
): Promise<void> {
  return new Promise((resolve) => {
    outgoing.once("close", resolve);
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        agent,
        method: incoming.method,
        path: incoming.url,
        headers: headersFor(incoming, id, body.length),
      },
      (response) => {
        const kept = { ...response.headers };
        for (const name of ["connection", "keep-alive", "transfer-encoding"]) delete kept[name];
        outgoing.writeHead(response.statusCode ?? 0, {
          ...kept,
          "lambda-web-request-id": id,
          "lambda-web-logstream": "test",
        });
        response.pipe(outgoing);
        response.once("error", () => outgoing.destroy());
      },
    );
    sent.once("socket", (socket) => {
      socket.pause();
      sent.once("finish", () => socket.resume());
    });
    sent.once("error", () => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502, { "lambda-web-error-type": "Runtime.ConnectionError" }).end();
    });
    outgoing.once("close", () => void (outgoing.writableFinished || sent.destroy()));
    sent.end(body);
  });
}

function headersFor(
  { headers, socket }: IncomingMessage,
  id: string,
  length: number,
): IncomingHttpHeaders {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const kept = Object.entries(headers).filter(
    ([name]) => !removed.has(name) && !named.includes(name) && !name.startsWith("lambda-web-"),
  );
  const { "x-forwarded-for": forwarded, host = "" } = headers;
  return {
    ...Object.fromEntries(kept),
    ...(length > 0 ? { "content-length": String(length) } : {}),
    host: host.replace(/:\d+$/, "").toLowerCase(),
    "x-forwarded-for": [forwarded ?? [], socket.remoteAddress ?? []].flat().join(", "),
    "lambda-web-request-id": id,
    "lambda-web-endpoint-name": "live",
  };
}
