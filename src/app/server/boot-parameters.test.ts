import { expect, test } from "vitest";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import type { ConfigParameter } from "../../parts/config/declare/parameter-overrides.ts";
import { uncachedRows } from "../../parts/config/read/key-rows.ts";
import { defineFeature } from "../features/feature.ts";
import { createRuntime } from "./create-runtime.ts";
import { buildServer } from "./server.ts";

const hello = defineFeature("hello", (r) => {
  const config = r.config({
    keys: { limit: createTenantConfig("number", { default: 1, bounds: { min: 1, max: 9 } }) },
  });
  return { config };
});
const { id, definition } = hello.config.limit;

/** A runtime over an SSM that answers what `answers` say, one after the other, the last for ever. */
function runtimeOver(...answers: (readonly ConfigParameter[] | Error)[]) {
  const seen = { opened: 0, closed: 0, reads: [] as string[] };
  let nowMs = 1_000_000;
  const server = buildServer({ features: [hello], config: { [id]: 2 }, ssm: { path: "/app" } });
  const runtime = createRuntime(server, {
    variables: {},
    clock: { now: () => nowMs },
    openAdapters: async () => {
      seen.opened += 1;
      return {
        ...unusedAdapters,
        parameters: {
          read: async (path) => {
            const answer = answers[Math.min(seen.reads.length, answers.length - 1)];
            seen.reads.push(path);
            if (answer instanceof Error) throw answer;
            return answer ?? [];
          },
          get: async () => undefined,
          middlewareStack: {} as never,
          close: () => {},
        },
        close: async () => {
          seen.closed += 1;
        },
      };
    },
  });
  const limit = async () => {
    const caller = { tenantId: "acme", userId: "ann" };
    const rows = uncachedRows(
      { read: async (addresses) => addresses.map(() => undefined) },
      caller,
    );
    const session = { ...caller, rows, clock: runtime.clock, log: runtime.log, held: new Map() };
    // Safe: no key here is computed, and the parts of a session that are read are there.
    return runtime.resolver.resolve(session as never, id, definition);
  };
  const advance = (ms: number) => {
    nowMs += ms;
  };
  return { server, runtime, seen, limit, advance };
}

const limitOf = (value: string): ConfigParameter => ({
  name: "/app/hello/limit",
  value,
  secure: false,
});

test("a parameter overrides the value of buildServer, which applies without one", async () => {
  const over = runtimeOver([limitOf("7")]);
  expect(await over.limit()).toEqual({ value: 2, source: "app-override" });
  await over.server.ready();
  expect(await over.limit()).toEqual({ value: 7, source: "app-override" });
  expect(over.seen.reads).toEqual(["/app"]);

  const without = runtimeOver([]);
  await without.server.ready();
  expect(await without.limit()).toEqual({ value: 2, source: "app-override" });
});

test("parameters are read once, and later changes in SSM have no effect", async () => {
  const { server, runtime, seen, limit } = runtimeOver([limitOf("7")], new Error("down"));
  await Promise.all([server.ready(), runtime.adapters.open(), server.ready()]);
  await runtime.adapters.open();
  expect(await limit()).toMatchObject({ value: 7 });
  expect(seen).toMatchObject({ opened: 1, closed: 0, reads: ["/app"] });
});

test("a failing SSM is a 503, and is read again after five to seven seconds", async () => {
  const { runtime, server, seen, limit, advance } = runtimeOver(
    new Error("down"),
    new Error("down"),
    [limitOf("3")],
  );
  const refused = {
    code: "config_unavailable",
    status: 503,
    headers: { "retry-after": "7" },
    cause: new Error("down"),
  };
  for (let call = 0; call < 10; call += 1)
    await expect(async () => runtime.adapters.open()).rejects.toMatchObject(refused);
  expect(seen).toMatchObject({ opened: 1, closed: 1 });

  advance(7_000);
  await expect(server.ready()).rejects.toMatchObject(refused);
  advance(4_999);
  await expect(server.ready()).rejects.toMatchObject(refused);
  expect(seen.opened).toBe(2);
  advance(2_001);
  await server.ready();
  expect(await limit()).toMatchObject({ value: 3 });
  expect(seen).toMatchObject({ opened: 3, closed: 2 });
});

test("processes that fail together read SSM again at different times", async () => {
  const together = Array.from({ length: 40 }, () => runtimeOver(new Error("down"), []));
  for (const { server, advance } of together) {
    await expect(server.ready()).rejects.toThrow();
    advance(6_000);
    await server.ready().catch(() => undefined);
  }
  expect(new Set(together.map(({ seen }) => seen.opened))).toEqual(new Set([1, 2]));
});

test("setting the clock back does not extend the pause", async () => {
  const { server, seen, advance } = runtimeOver(new Error("down"), []);
  await expect(server.ready()).rejects.toThrow();
  advance(-60_000);
  await server.ready();
  expect(seen.opened).toBe(2);
});

test("invalid parameters are a 503 with every problem as cause, until they are fixed", async () => {
  const { server, limit, advance } = runtimeOver(
    [limitOf("99"), { name: "/app/x/y", value: "s3cret", secure: true }],
    [limitOf("9")],
  );
  const failure = await server.ready().catch((error: Error) => error);
  expect(failure).toMatchObject({ code: "config_unavailable", cause: { name: "BootError" } });
  const { message } = (failure as { cause: Error }).cause;
  expect(message).toContain("/app/hello/limit");
  expect(message).toContain("/app/x/y");
  expect(message).not.toContain("s3cret");
  expect(await limit()).toMatchObject({ value: 2 });

  advance(7_000);
  await server.ready();
  expect(await limit()).toMatchObject({ value: 9 });
});

test("nothing is read without an SSM path", async () => {
  const server = buildServer({ features: [hello] });
  const read = async () => Promise.reject(new Error("asked"));
  const runtime = createRuntime(server, {
    variables: {},
    openAdapters: async () => ({
      ...unusedAdapters,
      parameters: { read, get: read, middlewareStack: {} as never, close: () => {} },
      close: async () => {},
    }),
  });
  await expect(runtime.adapters.open()).resolves.toBeDefined();
});

const secretive = defineFeature("secretive", (r) => {
  r.config({ keys: { token: createTenantConfig("text", { encrypted: true }) } });
});

/** A runtime whose key ring is what SSM has at `/ring`, as the answers say, the last for ever. */
function ringOver(
  { production = false, path = false },
  ...answers: (ConfigParameter | undefined | Error)[]
) {
  let gets = 0;
  let nowMs = 1_000_000;
  const lines: string[] = [];
  const server = buildServer({
    features: [secretive],
    keyRing: { parameter: "/ring" },
    environment: production ? "production" : "development",
    ...(path ? { ssm: { path: "/app" } } : {}),
  });
  const runtime = createRuntime(server, {
    variables: {},
    clock: { now: () => nowMs },
    developmentSecret: "the secret of development, long enough",
    write: (line) => lines.push(line),
    openAdapters: async () => ({
      ...unusedAdapters,
      parameters: {
        read: async () => [{ name: "/app/none/such", value: "1", secure: false }],
        get: async () => {
          const answer = answers[Math.min(gets++, answers.length - 1)];
          if (answer instanceof Error) throw answer;
          return answer;
        },
        middlewareStack: {} as never,
        close: () => {},
      },
      close: async () => {},
    }),
  });
  const advance = (ms: number) => {
    nowMs += ms;
  };
  return { server, runtime, lines, advance };
}

const key = Buffer.alloc(32, 7).toString("base64");
const ringOf = (value: string, secure = true): ConfigParameter => ({
  name: "/ring",
  value,
  secure,
});
const sound = ringOf(JSON.stringify({ active: "k1", keys: { k1: key } }));

test("the key ring is read at the start, and development creates a missing one", async () => {
  const read = ringOver({ production: true }, sound);
  await read.server.ready();
  expect(await read.runtime.cipher.active()).toBe("k1");
  const made = ringOver({}, undefined);
  await made.server.ready();
  expect(await made.runtime.cipher.active()).toBe("development");
});

test.each([
  ["missing", undefined, "key-ring-missing"],
  ["readable", ringOf(sound.value, false), "key-ring-readable"],
  ["not valid", ringOf(`{"active":"k1","keys":{"k1":"${key}x"}}`), "key-ring-invalid"],
])(
  "a key ring that is %s is a 503 in production, with its problem as cause and no keys in messages",
  async (_case, answer, rule) => {
    const { server } = ringOver({ production: true, path: true }, answer);
    const failure = await server.ready().catch((error: Error) => error);
    expect(failure).toMatchObject({
      code: "config_unavailable",
      cause: { problems: [{ rule: "parameter-unknown" }, { key: "/ring", rule }] },
    });
    expect(String((failure as Error).cause)).not.toContain(key);
  },
);

test("a key ring that has become invalid fails sealing, and is read again ten seconds later", async () => {
  const { server, runtime, advance } = ringOver({ production: true }, sound, ringOf("{}"), sound);
  await server.ready();
  advance(10_000);
  await expect(runtime.cipher.active()).rejects.toMatchObject({
    code: "config_unavailable",
    cause: { name: "BootError" },
  });
  advance(10_000);
  expect(await runtime.cipher.active()).toBe("k1");
});

test("a production server with encrypted keys and no key ring names them all at its start", async () => {
  const hooks = defineFeature("hooks", (r) => {
    r.config({ keys: { hookSecret: createTenantConfig("text", { encrypted: true }) } });
  });
  const started = async (features: readonly ReturnType<typeof defineFeature>[]) => {
    const lines: string[] = [];
    const server = buildServer({ features: [...features], environment: "production" });
    const runtime = createRuntime(server, {
      variables: {},
      write: (line) => lines.push(line),
      openAdapters: async () => unusedAdapters,
    });
    await runtime.adapters.open();
    return lines.map((line) => JSON.parse(line) as object);
  };
  expect(await started([hooks, secretive])).toMatchObject([
    {
      level: "warn",
      msg: "config.no_key_ring",
      keys: "hooks:config:hook-secret, secretive:config:token",
    },
  ]);
  expect(await started([hello])).toEqual([]);
});

test("development's key ring is created neither in production nor in Lambda", async () => {
  const activeIn = async (
    environment: "production" | "development",
    variables: Record<string, string>,
  ) => {
    const server = buildServer({ features: [secretive], environment });
    const runtime = createRuntime(server, {
      variables,
      developmentSecret: "the secret of development, long enough",
      write: () => {},
      openAdapters: async () => unusedAdapters,
    });
    await runtime.adapters.open();
    return runtime.cipher.active().catch(({ code }: { code: string }) => code);
  };
  expect(await activeIn("development", {})).toBe("development");
  expect(await activeIn("production", {})).toBe("no_key_ring");
  expect(await activeIn("development", { AWS_LAMBDA_FUNCTION_NAME: "files" })).toBe("no_key_ring");
});
