import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { median, type Result, resultOfRuns, rounded } from "./measure.ts";

const runs = 10;
const warmUps = 15;
const rounds = 30;
const requests = 800;
const connections = 32;

/**
 * CPU time of the server's process for one warm request over keep-alive connections, beside `node:http` that answers the
 * same, and writes the same line, without any of it: both to fd 1 before the call returns, which is /dev/null. Rounds are short
 * and alternate, so that what else the machine does meets both. What V8 makes of a server differs from process to process, so
 * each is started ten times; each run has a ratio of its own, whose median counts and whose quartiles are the spread. Fastify,
 * with a request ID, the same configuration read and a pino line, is printed for comparison; it is the peer where each request
 * has a line at its end, or is measured. `equal` is Fastify with what keelson does for each request besides.
 */
export async function httpResults(env: Readonly<Record<string, string>>): Promise<Result[]> {
  return [
    await contest("http-no-log", "silent", env, { floor: "floor", shown: "fastify" }),
    await contest("http-one-log", "logged", env, { shown: "fastify" }),
    await contest("request-line", "told", env, { peer: "fastify" }),
    await contest("metrics-on-http", "measured", env, { peer: "fastify" }),
    await contest("http-equal", "silent", env, { peer: "equal" }),
    await contest("http-equal-line", "told", env, { peer: "equal" }),
  ];
}

/** The servers beside ours, by their names in `http-server.ts`. */
interface Others {
  /** Default: `node:http`. */
  readonly peer?: "bare" | "fastify" | "equal";
  /** Its ratio becomes the floor. */
  readonly floor?: "floor";
  /** Its ratio is printed. */
  readonly shown?: "fastify";
}

async function contest(
  id: string,
  kind: string,
  env: Readonly<Record<string, string>>,
  { peer = "bare", floor, shown }: Others,
): Promise<Result> {
  const names = ["ours", peer, ...[floor, shown].filter((name) => name !== undefined)];
  const taken: Readonly<Record<string, number>>[] = [];
  for (let run = 0; run < runs; run++) {
    const times = await runOf(names, kind, env);
    taken.push(Object.fromEntries(names.map((name, index) => [name, times[index] ?? Number.NaN])));
  }
  const timeOf = (run: Readonly<Record<string, number>>, name: string) => run[name] ?? Number.NaN;
  if (shown !== undefined) {
    const ratios = taken.map((run) => timeOf(run, shown) / timeOf(run, peer));
    console.log(`${id}: ${shown} ${rounded(median(ratios), 3)} of ${peer}`);
  }
  const times = taken.map((run) => ({
    ours: timeOf(run, "ours"),
    peer: timeOf(run, peer),
    ...(floor !== undefined && { floor: timeOf(run, floor) }),
  }));
  return resultOfRuns({ id, unit: "us" }, times, 2);
}

/** The medians of a run of some servers, in microseconds of CPU time a request. */
async function runOf(
  names: readonly string[],
  kind: string,
  env: Readonly<Record<string, string>>,
): Promise<number[]> {
  const servers = await Promise.all(names.map((name) => startHttp(name, kind, env)));
  const sides = servers.map((server) => ({
    server,
    load: openLoad(server.port, kind),
    taken: [] as number[],
  }));
  try {
    for (let round = 0; round < warmUps; round++)
      for (const { load } of sides) await load.send(requests);
    for (let round = 0; round < rounds; round++) {
      // There and back: whatever grows or shrinks meanwhile, each is as often the first.
      for (const { server, load, taken } of round % 2 === 0 ? sides : sides.toReversed()) {
        const before = await server.cpu();
        await load.send(requests);
        taken.push(((await server.cpu()) - before) / requests);
      }
    }
    return sides.map(({ taken }) => median(taken));
  } finally {
    for (const { load } of sides) load.close();
    for (const { child } of servers) child.disconnect();
  }
}

/** A server of `http-server.ts`. */
export interface HttpProcess {
  readonly child: ChildProcess;
  readonly port: number;
  /** Microseconds so far. */
  cpu(): Promise<number>;
  /** Bytes after a forced collection. */
  heap(): Promise<number>;
}

/** Starts a server as a production process whose stdout is /dev/null. */
export async function startHttp(
  name: string,
  kind: string,
  env: Readonly<Record<string, string>>,
): Promise<HttpProcess> {
  const child = fork(new URL("http-server.ts", import.meta.url), [name, kind], {
    env: { ...process.env, ...env, NODE_ENV: "production" },
    execArgv: ["--expose-gc"],
    stdio: ["ignore", openSync("/dev/null", "w"), "inherit", "ipc"],
  });
  const [{ port }] = (await once(child, "message")) as [{ port: number }]; // safe: it is the first thing that it sends
  const ask = async (what: "cpu" | "heap") => {
    child.send(what);
    const [answer] = (await once(child, "message")) as [number]; // safe: it answers with nothing else
    return answer;
  };
  return { child, port, cpu: () => ask("cpu"), heap: () => ask("heap") };
}

/** Sends so many requests, one at a time on each connection, and checks every answer. */
export async function load(port: number, kind: string, requests: number): Promise<void> {
  const opened = openLoad(port, kind);
  await opened.send(requests);
  opened.close();
}

/** Connections that stay open. */
interface OpenLoad {
  /** Sends so many requests, one at a time on each connection, and checks every answer. */
  send(requests: number): Promise<void>;
  close(): void;
}

function openLoad(port: number, kind: string): OpenLoad {
  const head = `GET /limits/${kind === "logged" ? kind : "silent"} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\nuser-agent: bench\r\nx-request-id: 0191e7a0-5d1c-7000-8000-000000000001\r\n\r\n`;
  const sockets = Array.from({ length: connections }, () =>
    connect(port, "127.0.0.1").setEncoding("latin1"),
  );
  return {
    send: async (requests) => {
      await Promise.all(sockets.map((socket) => talk(socket, head, requests / connections)));
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function talk(socket: Socket, head: string, times: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = times;
    let text = "";
    const end = (error?: Error) => {
      socket.off("error", end).off("close", gone).off("data", read);
      if (error === undefined) resolve();
      else reject(error);
    };
    const gone = () => end(new Error(`the connection was closed with ${left} requests to go`));
    const read = (chunk: string) => {
      text += chunk;
      if (!text.endsWith('{"maxMb":77}')) return;
      if (!text.startsWith("HTTP/1.1 200 ")) return end(new Error(`not the answer: ${text}`));
      text = "";
      left -= 1;
      if (left > 0) socket.write(head);
      else end();
    };
    socket.on("error", end).on("close", gone).on("data", read);
    socket.write(head);
  });
}
