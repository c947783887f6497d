import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { EmbeddedStack } from "../../../src/embedded/stack/index.ts";
import { stackVariables } from "../../../src/embedded/stack/stack.ts";

export interface HostRequest {
  readonly id: number;
  readonly action: "open" | "close";
}

const state = Symbol.for("keelson.test.stack-host");

interface Host {
  readonly process: ChildProcess;
  readonly waiting: Map<number, PromiseWithResolvers<number>>;
  last: number;
}

/**
 * Stands in for `startEmbeddedStack` where `startTestApp` starts a stack: all test apps of a test
 * process have their stacks in one other process. Starting Node for each took a third of the time
 * of all tests.
 */
export async function startEmbeddedStack(): Promise<EmbeddedStack> {
  const host = hostOf(globalThis as { [state]?: Host });
  const id = ++host.last;
  const endpoint = `http://127.0.0.1:${await ask(host, { id, action: "open" })}`;
  let closing: Promise<unknown> | undefined;
  return {
    endpoint,
    env: Object.freeze({
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "embedded",
      AWS_SECRET_ACCESS_KEY: "embedded",
    }),
    close: async () => {
      closing ??= ask(host, { id, action: "close" });
      await closing;
    },
  };
}

/** Files that share a process share the host. It ends with the process. */
function hostOf(shared: { [state]?: Host }): Host {
  const running = shared[state];
  if (running?.process.connected) return running;
  const entry = fileURLToPath(new URL("./stack-host.ts", import.meta.url));
  const child = spawn(process.execPath, [entry], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...stackVariables(process.env), AWS_REGION: "us-east-1" },
  });
  child.unref();
  child.channel?.unref?.();
  const host: Host = { process: child, waiting: new Map(), last: 0 };
  child.on("message", ({ id, port }: { id: number; port: number }) => {
    host.waiting.get(id)?.resolve(port);
    host.waiting.delete(id);
  });
  child.once("disconnect", () => {
    const error = new Error("the process of the test apps' stacks has ended");
    for (const { reject } of host.waiting.values()) reject(error);
  });
  shared[state] = host;
  return host;
}

function ask(host: Host, request: HostRequest): Promise<number> {
  const answer = Promise.withResolvers<number>();
  host.waiting.set(request.id, answer);
  host.process.send(request);
  return answer.promise;
}
