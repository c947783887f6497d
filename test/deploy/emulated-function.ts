import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect } from "vitest";
import { freePort } from "../support/free-port.ts";
import type { Deployed } from "./package.ts";

/** A packaged function in Lambda's own runtime. */
export interface EmulatedFunction {
  /** Its answer; an error that it throws is an answer too, with `errorMessage`. */
  invoke(event: unknown): Promise<Record<string, unknown>>;
  /** The log records so far. */
  readonly logs: readonly Record<string, unknown>[];
  /** All that it and the emulator printed. */
  text(): string;
  stop(): Promise<void>;
}

/** Starts a function as AWS does: the archive's handler in Lambda's runtime, with the stack's variables. */
export async function startFunction(
  { emulator, runtime, task, variables }: Deployed,
  name: string,
  {
    timeoutSeconds = 60, // of a start and calls of LocalStack on a busy machine
    spareSeconds = 0,
    env = {},
  }: {
    readonly timeoutSeconds?: number;
    /** Time for which the emulator still takes an answer after the function's timeout. */
    readonly spareSeconds?: number;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<EmulatedFunction> {
  const [port, apiPort] = [await freePort(), await freePort()];
  const addresses = [
    "--runtime-interface-emulator-address",
    `127.0.0.1:${port}`,
    "--runtime-api-address",
    `127.0.0.1:${apiPort}`,
  ];
  const told = spareSeconds > 0 ? await tellEarlierDeadlines(apiPort, spareSeconds) : undefined;
  const command = [
    ...(told === undefined ? [] : ["/usr/bin/env", `AWS_LAMBDA_RUNTIME_API=${told.address}`]),
    ...[process.execPath, runtime, `lambda.${name}`],
  ];
  const child = spawn(emulator, [...addresses, ...command], {
    cwd: task,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: {
      ...variables,
      NODE_ENV: "production",
      LAMBDA_TASK_ROOT: task,
      AWS_LAMBDA_FUNCTION_NAME: name,
      AWS_LAMBDA_FUNCTION_TIMEOUT: String(timeoutSeconds + spareSeconds),
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "512",
      ...env,
    },
  });
  const ended = once(child, "exit");
  const logs: Record<string, unknown>[] = [];
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      logs.push(
        ...lines
          .filter((line) => line.startsWith('{"'))
          .map((line) => JSON.parse(line) as Record<string, unknown>),
      );
    });
  }
  await expect
    .poll(() => isListening(port), { message: `the emulator of ${name} listens` })
    .toBe(true);
  // The emulator takes one invocation at a time, and breaks off with a second.
  let last: Promise<unknown> = Promise.resolve();
  return {
    logs,
    text: () => text,
    invoke: (event) => {
      const invoked = last.then(async () => {
        const response = await fetch(
          `http://127.0.0.1:${port}/2015-03-31/functions/function/invocations`,
          {
            method: "POST",
            body: JSON.stringify(event),
          },
        );
        const answer = await response.text();
        try {
          return JSON.parse(answer) as Record<string, unknown>;
        } catch {
          throw new Error(`${name} answered ${JSON.stringify(answer)}\n${text}`);
        }
      });
      last = invoked.catch(() => undefined);
      return invoked;
    },
    stop: async () => {
      // Its group: the runtime is a child of the emulator.
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
      await ended;
      told?.close();
    },
  };
}

/**
 * Passes on the emulator's API to the function, with deadlines that are earlier. The emulator would
 * otherwise drop an answer that a busy machine delivers late.
 */
async function tellEarlierDeadlines(apiPort: number, spareSeconds: number) {
  const deadline = "lambda-runtime-deadline-ms";
  const api = { host: "127.0.0.1", port: apiPort, agent: false };
  const server = createServer((asked, told) => {
    const { method, url: path, headers } = asked;
    const passedOn = request({ ...api, method, path, headers }, (answer) => {
      const dueMs = answer.headers[deadline];
      if (dueMs !== undefined)
        answer.headers[deadline] = String(Number(dueMs) - spareSeconds * 1_000);
      told.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(told);
    });
    passedOn.on("error", () => told.destroy());
    asked.pipe(passedOn);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  return {
    address: `127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () =>
      resolve(false),
    );
    socket.once("connect", () => socket.destroy());
  });
}
