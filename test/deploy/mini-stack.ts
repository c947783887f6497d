import { spawn } from "node:child_process";
import { once } from "node:events";
import { type RequestOptions, request } from "node:http";
import { delimiter, dirname } from "node:path";
import { expect, vi } from "vitest";
import { freePort } from "../support/free-port.ts";
import type { Deployed } from "./package.ts";

/** An account on this machine. Its functions run in the `node` of the tests. */
export interface MiniStack {
  /** Variables that point a program at it, and the program `aws`. */
  readonly env: NodeJS.ProcessEnv;
  /** All that it and its functions printed. */
  text(): string;
  /** Calls a service with JSON: `secretsmanager.ListSecrets`. */
  call(target: string, input: object): Promise<Record<string, unknown>>;
  /** Sends a request to an HTTP API, which the host's name determines. */
  ask(api: string, ask: MiniStackRequest): Promise<[status: number, body: Record<string, unknown>]>;
  stop(): Promise<void>;
}

/** A request to an HTTP API. */
export interface MiniStackRequest {
  readonly method?: string;
  readonly path: string;
  readonly body?: object;
  readonly authorization?: string;
}

/** Starts a {@link MiniStack}. */
export async function startMiniStack({
  miniStack,
  awsCli,
}: Pick<Deployed, "miniStack" | "awsCli">): Promise<MiniStack> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    PATH: [dirname(process.execPath), awsCli, process.env["PATH"]].join(delimiter), // its functions run in the `node` that is found there
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: "us-east-1",
    AWS_DEFAULT_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  const child = spawn(miniStack, ["--bind", `127.0.0.1:${port}`, "mini_stack:app"], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // its functions are in its group
    env: {
      ...env,
      GATEWAY_PORT: String(port),
      PYTHONPATH: import.meta.dirname,
      PYTHONDONTWRITEBYTECODE: "1",
    },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  await vi.waitFor(() => expect(text).toContain("Running on"), { timeout: 120_000 });
  return {
    env,
    text: () => text,
    call: async (target, input) => {
      const [service = ""] = target.split(".");
      const headers = {
        "x-amz-target": target,
        "content-type": "application/x-amz-json-1.1",
        authorization: `AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/${service}/aws4_request`,
      };
      const [, answer] = await send(port, { method: "POST", headers }, JSON.stringify(input));
      return answer;
    },
    ask: (api, asked) => ask(port, api, asked),
    stop: async () => {
      if (child.pid === undefined || child.exitCode !== null) return;
      const ended = once(child, "exit");
      process.kill(-child.pid, "SIGKILL");
      await ended;
    },
  };
}

function ask(
  port: number,
  api: string,
  { method = "GET", path, body, authorization }: MiniStackRequest,
): Promise<[status: number, body: Record<string, unknown>]> {
  const headers = {
    host: `${api}.execute-api.localhost:${port}`,
    "content-type": "application/json",
    ...(authorization === undefined ? {} : { authorization }),
  };
  return send(port, { method, path, headers }, body === undefined ? "" : JSON.stringify(body));
}

/** Sends a request on a new connection, because the account may be closing one that is idle. */
function send(
  port: number,
  { headers, ...options }: Pick<RequestOptions, "method" | "path"> & { readonly headers: object },
  text: string,
): Promise<[status: number, body: Record<string, unknown>]> {
  const length = { "content-length": Buffer.byteLength(text) };
  const asked = request({
    ...{ ...options, hostname: "127.0.0.1", port, agent: false },
    headers: { ...headers, ...length },
  });
  return new Promise((resolve, reject) => {
    asked.on("response", (response) => {
      let answer = "";
      response.on("data", (chunk: Buffer) => {
        answer += chunk.toString();
      });
      response.on("end", () => resolve([response.statusCode ?? 0, JSON.parse(answer)]));
    });
    asked.on("error", reject);
    asked.end(text);
  });
}
