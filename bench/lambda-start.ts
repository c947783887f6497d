import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";

/** What Lambda's own runtime is run with. */
export interface LambdaRuntime {
  /** A program. */
  readonly emulator: string;
  /** A module that Node runs in it. */
  readonly runtime: string;
}

/** Installed where it is not there yet, as the tests of the package do. */
export async function lambdaRuntime(): Promise<LambdaRuntime> {
  const { installRuntime } = await import(
    new URL("../scripts/package-emulator.mjs", import.meta.url).href
  );
  return installRuntime(console.log) as LambdaRuntime; // safe: it is what it says that it returns
}

/** The milliseconds that events take, the first of them with the process, which the emulator starts for it. */
export async function millisecondsOf(
  { emulator, runtime }: LambdaRuntime,
  folder: string,
  env: Readonly<Record<string, string>>,
  events: readonly Asked[],
): Promise<number[]> {
  const [port, runtimePort] = await freePorts();
  const child = spawn(
    emulator,
    [
      ...[
        "--runtime-interface-emulator-address",
        `127.0.0.1:${port}`,
        "--runtime-api-address",
        `127.0.0.1:${runtimePort}`,
      ],
      ...[process.execPath, runtime, "app.handler"],
    ],
    {
      cwd: folder,
      detached: true, // a group of its own: the function's process ends with the emulator's
      stdio: "ignore",
      env: {
        ...process.env,
        ...env,
        NODE_ENV: "production",
        LAMBDA_TASK_ROOT: folder,
        AWS_LAMBDA_FUNCTION_NAME: "files",
        AWS_LAMBDA_FUNCTION_TIMEOUT: "20",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "512",
      },
    },
  );
  try {
    while (!(await isListening(port))) await new Promise((resolve) => setTimeout(resolve, 5));
    const taken: number[] = [];
    for (const asked of events) taken.push(await answered(port, asked));
    return taken;
  } finally {
    await stop(child);
  }
}

/** An event, and the body of its answer. */
export interface Asked {
  readonly event: object;
  readonly body: string;
}

async function answered(port: number | undefined, asked: Asked): Promise<number> {
  const began = performance.now();
  const response = await fetch(
    `http://127.0.0.1:${port}/2015-03-31/functions/function/invocations`,
    {
      method: "POST",
      body: JSON.stringify(asked.event),
    },
  );
  const text = await response.text();
  const ms = performance.now() - began;
  const { statusCode, body } = JSON.parse(text) as { statusCode?: number; body?: string }; // safe: what is neither is not the answer
  if (statusCode !== 200 || body !== asked.body) throw new Error(`not the answer: ${text}`);
  return ms;
}

async function stop(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null) return;
  const exited = once(child, "exit");
  process.kill(-pid, "SIGKILL");
  await exited;
}

/** The emulator takes no port 0: two that were free a moment ago. */
async function freePorts(): Promise<[number, number]> {
  const servers = [createServer().listen(0, "127.0.0.1"), createServer().listen(0, "127.0.0.1")];
  await Promise.all(servers.map((server) => once(server, "listening")));
  // Safe: they listen on TCP, so their addresses are objects.
  const [first, second] = servers.map((server) => (server.address() as { port: number }).port);
  for (const server of servers) server.close();
  return [Number(first), Number(second)];
}

function isListening(port: number | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    }).on("error", () => resolve(false));
  });
}
