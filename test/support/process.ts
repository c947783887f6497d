import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A started server process of a test. */
export interface StartedProcess {
  readonly child: ChildProcess;
  readonly port: number;
  /** The log records so far, parsed; without lines that are not JSON. Empty if `onLine` takes them. */
  readonly logs: readonly Record<string, unknown>[];
  /** Output that is not a log record. */
  readonly text: () => string;
  /** Resolves to exit code and signal. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/**
 * Starts a process in a separate group and waits until it logs `server.started`.
 *
 * @param onLine - takes each line of stdout and of stderr, which are then not kept.
 */
export async function startProcess(
  command: string,
  parameters: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  onLine?: (line: string) => void,
): Promise<StartedProcess> {
  const child = spawn(command, parameters, {
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const logs: Record<string, unknown>[] = [];
  let text = "";
  const exited = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  const port = await new Promise<number>((resolve, reject) => {
    let rest = "";
    const read = (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const record = parse(line);
        onLine?.(line);
        if (record?.["msg"] === "server.started") resolve(Number(record["port"]));
        if (onLine !== undefined) continue;
        if (record === undefined) text += `${line}\n`;
        else logs.push(record);
      }
    };
    child.stdout?.on("data", read);
    if (onLine !== undefined) createInterface({ input: child.stderr }).on("line", onLine);
    else
      child.stderr.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
    void exited.then(({ code }) =>
      reject(
        new Error(`it exited with ${code} before it started: ${text} ${JSON.stringify(logs)}`),
      ),
    );
  });
  return { child, port, logs, text: () => text, exited };
}

/** Sends a signal to the whole group of a process, if it is still there. */
export function signalGroup({ child }: StartedProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    if (process.platform === "win32")
      child.kill(signal); // there are no groups
    else process.kill(-child.pid, signal);
  } catch {
    // It has already ended.
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
