import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lambdaEvent } from "../src/tools/testing/index.ts";
import { FunctionEnvironment } from "../test/support/runtime-api.ts";
import { startWebFunction, type WebFunctionProcess } from "../test/support/web-function.ts";
import { bundleFile, bundleOurs } from "./bundles.ts";
import { lambdaRuntime } from "./lambda-start.ts";
import { median, type Result, result, rounded } from "./measure.ts";

type Env = Readonly<Record<string, string>>;

const rounds = 7;
/** Requests of one measurement of a rate: an event function answers one at a time. */
const requests = { function: 400, web: 4_000 };
/** The default of `MaxConcurrencyPerEnvironment`. */
const concurrent = 64;

/** One environment behind a front. */
interface Environment {
  /** Returns the time to the first byte of a response's body, in milliseconds. */
  firstByte(path: string): Promise<number>;
  /** Returns requests per second, as many at the same time as the front sends. */
  rate(): Promise<number>;
  /** Returns the time from SIGTERM among streams to the end of the process; 0 for a function, which Lambda ends between events. */
  drain(): Promise<number>;
  stop(): Promise<void>;
}

const fronts = { http: "httpApi", rest: "restApi", url: "functionUrl", web: undefined } as const;
type Front = keyof typeof fronts;

/**
 * One environment behind each of Lambda's four fronts, beside one that uses nothing but the runtime: from the start of its process to the first
 * byte of its first response; the first byte of a stream whose chunks come every 20 ms; requests per second; the time that a
 * Web Function takes to end with 64 streams in flight.
 */
export async function frontResults(env: Env): Promise<Result[]> {
  const { runtime } = await lambdaRuntime();
  const folder = mkdtempSync(join(tmpdir(), "keelson-bench-"));
  const at = (name: string) => join(folder, name);
  const names = { ours: ["function", "web"], peer: ["bare-function", "bare-web"] };
  try {
    for (const name of [...names.ours, ...names.peer])
      await bundleOurs(at(name), bundleFile(`front-${name}`));
    const start = (side: "ours" | "peer", front: Front): Promise<Environment> => {
      const [functions = "", web = ""] = names[side];
      return front === "web"
        ? startWeb(at(web), env)
        : startFunction(runtime, at(functions), front, env);
    };
    const results: Result[] = [];
    for (const front of Object.keys(fronts) as Front[]) {
      const taken = { ours: [] as Figures[], peer: [] as Figures[] };
      for (let round = -1; round < rounds; round++) {
        for (const side of ["ours", "peer"] as const) {
          const figures = await measured(() => start(side, front));
          if (round >= 0) taken[side].push(figures);
        }
      }
      results.push(...resultsOf(front, taken.ours, taken.peer));
    }
    return results;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Figures {
  readonly cold: number;
  readonly stream: number;
  readonly rate: number;
  readonly drain: number;
}

async function measured(start: () => Promise<Environment>): Promise<Figures> {
  const beganMs = performance.now();
  const environment = await start();
  try {
    await environment.firstByte("/things/1");
    const cold = performance.now() - beganMs;
    await environment.firstByte("/stream");
    const stream = await environment.firstByte("/stream");
    await environment.rate();
    return { cold, stream, rate: await environment.rate(), drain: await environment.drain() };
  } finally {
    await environment.stop();
  }
}

function resultsOf(front: Front, ours: readonly Figures[], peer: readonly Figures[]): Result[] {
  const of = (name: keyof Figures, unit: Result["unit"]) =>
    result({
      id: `front-${front}-${name}`,
      ours: rounded(median(ours.map((figures) => figures[name])), unit === "ms" ? 1 : 0),
      peer: rounded(median(peer.map((figures) => figures[name])), unit === "ms" ? 1 : 0),
      unit,
    });
  return [
    of("cold", "ms"),
    of("stream", "ms"),
    of("rate", "per s"),
    ...(front === "web" ? [of("drain", "ms")] : []),
  ];
}

async function startFunction(
  runtime: string,
  folder: string,
  front: Exclude<Front, "web">,
  env: Env,
): Promise<Environment> {
  const handler = front === "http" ? "app.whole" : "app.streaming";
  const environment = await FunctionEnvironment.start({
    runtime,
    folder,
    handler,
    env: { ...env, NODE_ENV: "production" },
  });
  const invoke = async (path: string) => {
    const invoked = await environment.invoke(lambdaEvent(fronts[front], { path, method: "GET" }));
    const text = front === "http" ? bodyOf(invoked.text) : invoked.text;
    if (text !== (path === "/stream" ? "0\n1\n2\n3\n4\n" : JSON.stringify({ path })))
      throw new Error(`not the answer: ${invoked.text} ${environment.text}`);
    return invoked;
  };
  return {
    // The first chunk of a response that streams is its status and headers.
    firstByte: async (path) =>
      (await invoke(path)).chunksMs[front === "http" ? 0 : 1] ?? Number.NaN,
    rate: async () => {
      const beganMs = performance.now();
      await Promise.all(Array.from({ length: requests.function }, () => invoke("/things/1")));
      return (requests.function / (performance.now() - beganMs)) * 1_000;
    },
    drain: async () => 0,
    stop: () => environment.stop(),
  };
}

function bodyOf(text: string): string {
  // Safe: it is a function's result.
  const { body = "", isBase64Encoded } = JSON.parse(text) as {
    readonly body?: string;
    readonly isBase64Encoded?: boolean;
  };
  return isBase64Encoded === true ? Buffer.from(body, "base64").toString() : body;
}

async function startWeb(folder: string, env: Env): Promise<Environment> {
  const started = await startWebFunction([join(folder, "app.mjs")], {
    ...env,
    NODE_ENV: "production",
  });
  const agent = new Agent({ keepAlive: true, maxSockets: concurrent });
  return {
    firstByte: (path) => get(started, agent, path).then(({ firstMs }) => firstMs),
    rate: async () => {
      const beganMs = performance.now();
      let left = requests.web;
      const client = async () => {
        while (left-- > 0) await get(started, agent, "/things/1");
      };
      await Promise.all(Array.from({ length: concurrent }, client));
      return (requests.web / (performance.now() - beganMs)) * 1_000;
    },
    drain: async () => {
      const begun = Array.from({ length: concurrent }, () => {
        const first = Promise.withResolvers<void>();
        return { first: first.promise, whole: get(started, agent, "/stream", first.resolve) };
      });
      await Promise.all(begun.map(({ first }) => first));
      const [{ ms }] = await Promise.all([started.stop(), ...begun.map(({ whole }) => whole)]);
      return ms;
    },
    stop: async () => {
      agent.destroy();
      await started.stop();
    },
  };
}

/** Waits for the whole response. */
function get(
  { port }: WebFunctionProcess,
  agent: Agent,
  path: string,
  whenFirst: () => void = () => undefined,
): Promise<{ readonly firstMs: number }> {
  return new Promise((resolve, reject) => {
    const beganMs = performance.now();
    let firstMs = Number.NaN;
    request({ host: "127.0.0.1", port, path, agent }, (response) => {
      response.once("data", () => {
        firstMs = performance.now() - beganMs;
        whenFirst();
      });
      response.on("data", () => undefined);
      response.once("error", reject);
      response.once("end", () =>
        response.statusCode === 200
          ? resolve({ firstMs })
          : reject(new Error(`${path}: status ${response.statusCode}`)),
      );
    })
      .once("error", reject)
      .end();
  });
}
