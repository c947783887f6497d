import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { connect } from "node:net";
import { median, type Result, result, rounded } from "./measure.ts";

const warmUps = 4;
const rounds = 9;
const requests = 8_000;
const connections = 32;

/**
 * CPU time of the server's process for one warm request over keep-alive connections, beside `node:http` that answers the
 * same without any of it. Fastify, with a request ID, the same configuration read and a pino line, is printed for comparison.
 */
export async function httpResults(env: Readonly<Record<string, string>>): Promise<Result[]> {
  return [
    await contest("http-no-log", "silent", "ratio <= 1.3", env),
    await contest("http-one-log", "logged", "ratio <= 1.55", env),
  ];
}

async function contest(id: string, kind: string, goal: string, env: Readonly<Record<string, string>>): Promise<Result> {
  const servers = await Promise.all(["ours", "bare", "fastify"].map((name) => startHttp(name, kind, env)));
  try {
    for (let round = 0; round < warmUps; round++) for (const server of servers) await load(server.port, kind, requests);
    const taken = servers.map(() => [] as number[]);
    for (let round = 0; round < rounds; round++) {
      for (const [index, server] of servers.entries()) {
        const before = await server.cpu();
        await load(server.port, kind, requests);
        taken[index]?.push(((await server.cpu()) - before) / requests);
      }
    }
    const [ours = 0, peer = 0, fastify = 0] = taken.map((times) => rounded(median(times), 2));
    console.log(`${id}: Fastify ${fastify} us, ${rounded(fastify / peer, 3)} of node:http`);
    return result({ id, goal, ours, peer, unit: "us" });
  } finally {
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
export async function startHttp(name: string, kind: string, env: Readonly<Record<string, string>>): Promise<HttpProcess> {
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
  const head = `GET /limits/${kind} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\nuser-agent: bench\r\nx-request-id: 0191e7a0-5d1c-7000-8000-000000000001\r\n\r\n`;
  await Promise.all(Array.from({ length: connections }, () => talk(port, head, requests / connections)));
}

function talk(port: number, head: string, times: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = times;
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(head));
    socket.setEncoding("latin1").on("error", reject);
    socket.on("data", (chunk: string) => {
      text += chunk;
      if (!text.endsWith('{"maxMb":77}')) return;
      if (!text.startsWith("HTTP/1.1 200 ")) return reject(new Error(`not the answer: ${text}`));
      text = "";
      left -= 1;
      if (left > 0) socket.write(head);
      else socket.end(resolve);
    });
  });
}
