import { Agent } from "node:http";
import { join } from "node:path";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { type Host, type SoakAnswer, type SoakRequest, sendToContainer } from "./host.ts";
import type { ProcessParts } from "./process-parts.ts";

/** A place in which a container runs. One that ends is replaced by the next. */
export interface ContainerSlot extends Host {
  readonly isReady: boolean;
  /** Signals the container, and resolves once the next one serves. */
  replace(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  stop(): Promise<void>;
}

const entry = join(import.meta.dirname, "container.ts");

export async function startContainerSlot(parts: ProcessParts): Promise<ContainerSlot> {
  const agent = new Agent({ keepAlive: true });
  let running = await start(parts);
  let isReady = true;
  let isEnding = false;
  const watch = (one: StartedProcess) =>
    void one.exited.then(({ code, signal }) => {
      if (!isEnding) parts.ended(`a container ended by itself: ${signal ?? `exit code ${code}`}`);
    });
  watch(running);
  const replace = async (signal: "SIGTERM" | "SIGKILL") => {
    isEnding = true;
    running.child.kill(signal);
    // A load balancer stops sending requests to a draining container.
    isReady = signal === "SIGKILL";
    await running.exited;
    isReady = false;
    running = await start(parts);
    isEnding = false;
    watch(running);
    isReady = true;
  };
  let replacing = Promise.resolve();
  return {
    kind: "container",
    get isReady() {
      return isReady;
    },
    send: (request: SoakRequest): Promise<SoakAnswer> =>
      sendToContainer(agent, running.port, request),
    replace: (signal) => {
      replacing = replace(signal);
      return replacing;
    },
    stop: async () => {
      await replacing.catch(() => undefined);
      isEnding = true;
      signalGroup(running, "SIGKILL");
      await running.exited;
      agent.destroy();
    },
  };
}

/** A start fails if the store does, and is then repeated. */
async function start({ env, onLine }: ProcessParts): Promise<StartedProcess> {
  for (let attempt = 1; ; attempt += 1) {
    let last = "";
    const take = (line: string) => {
      last = line;
      onLine(line);
    };
    try {
      return await startProcess(process.execPath, [entry], { ...env, PORT: "0" }, take);
    } catch (cause) {
      if (attempt === starts) throw new Error(`no container starts: ${last}`, { cause });
    }
  }
}

const starts = 20;
