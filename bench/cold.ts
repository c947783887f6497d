import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleAsUser, bundleFile, bundleOurs, bundlePeer } from "./bundles.ts";
import { writeEmpty, writeFloor } from "./floor.ts";
import { type Asked, lambdaRuntime, millisecondsOf } from "./lambda-start.ts";
import { median, type Result, result, rounded, spreadOf } from "./measure.ts";
import { startTlsFront } from "./tls-front.ts";

type Env = Readonly<Record<string, string>>;

/**
 * How long a cold function takes to its first answers in Lambda's own runtime: the start of the process, the import, and a
 * value from DynamoDB, in the clear and over TLS, or a write. Beside ours stand the bundles of an application that has installed the package, made by the build
 * scripts of `docs/bundle.md`.
 */
export async function coldResults(env: Env, rounds = 30): Promise<Result[]> {
  const program = await lambdaRuntime();
  const folder = mkdtempSync(join(tmpdir(), "keelson-bench-"));
  const front = await startTlsFront(env);
  const at = (name: string) => join(folder, name);
  try {
    await bundleOurs(at("ours"));
    await bundlePeer(at("peer"));
    await bundleOurs(at("write-ours"), bundleFile("write-ours"));
    await bundlePeer(at("write-peer"), bundleFile("write-peer"));
    await bundleAsUser(at("user"), { rolldown: at("rolldown"), esbuild: at("esbuild") });
    writeEmpty(at("empty"));
    writeFloor(at("floor"));
    const starts: readonly Start[] = [
      ...["empty", "floor", "ours", "peer"].map((name) => ({
        name,
        folder: at(name),
        env,
        events: () => [read, read],
      })),
      ...["rolldown", "esbuild"].map((name) => ({
        name,
        folder: at(name),
        env,
        events: () => [read],
      })),
      ...["floor", "ours", "peer"].map((name) => ({
        name: `${name}-tls`,
        folder: at(name),
        env: front.env,
        events: () => [read],
      })),
      ...["write-ours", "write-peer"].map((name) => ({
        name,
        folder: at(name),
        env,
        events: () => [write()],
      })),
    ];
    const taken = new Map(starts.map(({ name }) => [name, [] as number[][]]));
    for (let round = -2; round < rounds; round++) {
      for (const { name, folder, env, events } of starts) {
        const times = await millisecondsOf(program, folder, env, events());
        if (round >= 0) taken.get(name)?.push(times);
      }
    }
    const timesOf = (name: string, event = 0) =>
      (taken.get(name) ?? []).map((times) => times[event] ?? Number.NaN);
    const ms = (name: string, event = 0) => rounded(median(timesOf(name, event)), 1);
    for (const { name } of starts)
      console.log(`${name}: ${ms(name)} ms, quartiles ${quartiles(timesOf(name))}`);
    const pair = (prefix: string, suffix: string, event = 0) => ({
      ours: ms(`${prefix}ours${suffix}`, event),
      peer: ms(`${prefix}peer${suffix}`, event),
      unit: "ms" as const,
    });
    const asUser = (name: string) => {
      const ours = timesOf("ours");
      const spread = spreadOf(
        timesOf(name).map((taken, round) => taken / (ours[round] ?? Number.NaN)),
      );
      return {
        ours: ms(name),
        peer: ms("ours"),
        unit: "ms" as const,
        spread,
      };
    };
    return [
      result({ id: "lambda-cold", ...pair("", ""), floor: ms("floor") }),
      result({ id: "user-bundle-cold", ...asUser("rolldown") }),
      result({ id: "user-esbuild-cold", ...asUser("esbuild") }),
      result({
        id: "lambda-cold-tls",
        ...pair("", "-tls"),
        floor: ms("floor-tls"),
      }),
      result({
        id: "second-request",
        ...pair("", "", 1),
        floor: ms("empty", 1),
      }),
      result({ id: "first-write-cold", ...pair("write-", "") }),
    ];
  } finally {
    front.close();
    rmSync(folder, { recursive: true });
  }
}

/** A function that is started, again and again, and the events that it gets. */
interface Start {
  readonly name: string;
  readonly folder: string;
  readonly env: Env;
  readonly events: () => readonly Asked[];
}

const path = "/limits/f1";
const common = { version: "2.0", rawQueryString: "", isBase64Encoded: false };
const contextOf = (method: string, path: string) => ({
  http: { method, path, sourceIp: "192.0.2.1" },
  stage: "$default",
});

const read: Asked = {
  event: {
    ...common,
    rawPath: path,
    headers: { "x-request-id": "r1" },
    pathParameters: { id: "f1" },
    requestContext: contextOf("GET", path),
  },
  body: '{"id":"f1","maxMb":77}',
};

/** Each its own: a repeat would be answered from the first. */
function write(): Asked {
  return {
    event: {
      ...common,
      rawPath: "/files/f1",
      headers: {
        "x-request-id": "r1",
        "content-type": "application/json",
        "idempotency-key": crypto.randomUUID(),
      },
      pathParameters: { id: "f1" },
      requestContext: contextOf("PUT", "/files/f1"),
      body: '{"name":"b"}',
    },
    body: '{"id":"f1","name":"b"}',
  };
}

function quartiles(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => rounded(sorted[Math.floor(sorted.length * share)] ?? Number.NaN, 1);
  return `${at(0.25)}-${at(0.75)}`;
}
