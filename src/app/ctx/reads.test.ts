import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import { reply } from "../../parts/http/reply.ts";
import { type ReadingSession, readConfig, readEvents, runQuery } from "./reads.ts";

const nowMs = 1_700_000_000_000;
const node = { key: "notes.size", waitsFor: new Set<never>(), settled: false };

interface Options {
  readonly handlers?: Readonly<Record<string, unknown>>;
  readonly events?: Readonly<Record<string, unknown>>;
  readonly configKeys?: Readonly<Record<string, unknown>>;
  readonly resolve?: (session: ReadingSession, ...given: unknown[]) => unknown;
  readonly held?: ReadonlyMap<string, unknown>;
  readonly session?: Readonly<Record<string, unknown>>;
  readonly output?: unknown;
}

/** Session of a request of Ann, whose server has the declarations that the test gives. */
function sessionWith({ resolve, held, session, output, ...declared }: Options) {
  const user = { id: "ann", tenantId: "acme", roles: [] };
  const warned: unknown[] = [];
  const runtime = {
    environment: "test",
    server: {
      options: { output },
      registry: {
        handlers: new Map(Object.entries(declared.handlers ?? {})),
        configKeys: new Map(Object.entries(declared.configKeys ?? {})),
        events: new Map(Object.entries(declared.events ?? {})),
      },
    },
    resolver: { resolve },
  };
  const fake = {
    runtime,
    // The run's user, whom a session on behalf of another owner does not act for.
    scope: { runtime, misfits: undefined, user: { id: "root", roles: ["editor"] } },
    user,
    tenantId: user.tenantId,
    clock: { now: () => nowMs },
    known: held,
    held: held ?? new Map(),
    logFor: (handler: string | undefined) => ({
      warn: (message: string) => void warned.push([handler, message]),
    }),
    queryContext: (of: unknown, log: unknown) => ({ of, log }),
    ...session,
  };
  // Safe cast: reads use nothing else of their session.
  return { session: fake as unknown as ReadingSession, warned };
}

describe("ctx.config", () => {
  const size = { id: "notes.size", definition: { type: "number" } };
  // Safe cast: a read uses only the ID of a handle.
  const handle = (id: unknown) => ({ id }) as never;
  /** A decision about the key that an earlier read of the request has left. */
  const decision = (untilMs: number, isHeld = true) => {
    const asked: number[] = [];
    const rows = { isHeld: (ms: number) => asked.push(ms) > 0 && isHeld };
    return { asked, held: new Map([["notes.size", { value: Promise.resolve(3), untilMs, rows }]]) };
  };
  const resolving = { configKeys: { "notes.size": size }, resolve: async () => ({ value: 4 }) };

  test("gives what the request has decided before, without asking the resolver", async () => {
    const { asked, held } = decision(nowMs + 1);
    const { session } = sessionWith({ held });
    expect(await readConfig(session, handle("notes.size"), undefined)).toBe(3);
    expect(asked).toEqual([nowMs]);
  });

  test.each([
    ["one of its rows expires now", nowMs, true],
    ["its rows are no longer cached", nowMs + 1, false],
  ])("asks the resolver again when %s", async (_, untilMs, isHeld) => {
    const { session } = sessionWith({ ...resolving, held: decision(untilMs, isHeld).held });
    expect(await readConfig(session, handle("notes.size"), undefined)).toBe(4);
  });

  test("asks the resolver for the declared key, on behalf of the computed key that reads", async () => {
    const asked: unknown[] = [];
    const { session } = sessionWith({
      ...resolving,
      resolve: async (...given) => {
        asked.push(...given);
        return { value: 5 };
      },
    });
    expect(await readConfig(session, handle("notes.size"), node)).toBe(5);
    expect(asked.slice(1, 3)).toEqual(["notes.size", size.definition]);
    expect(asked[0]).toBe(session);
    expect(asked[3]).toBe(node);
  });

  test("gives all readers the one promise of a decision that needed no wait", () => {
    const value = Promise.resolve(6);
    const held = new Map<string, unknown>();
    const { session } = sessionWith({
      ...resolving,
      held,
      resolve: () => {
        held.set("notes.size", { value });
        return { value: 6 };
      },
    });
    expect(readConfig(session, handle("notes.size"), undefined)).toBe(value);
  });

  test("passes on the error of the resolver", async () => {
    const resolve = async () => {
      throw new Error("no rows");
    };
    const { session } = sessionWith({ ...resolving, resolve });
    await expect(readConfig(session, handle("notes.size"), undefined)).rejects.toThrow("no rows");
  });

  test.each([
    ["another server's handle", handle("other.size"), "other.size"],
    ["no handle", undefined as never, "undefined"], // as plain JavaScript may pass it
  ])("rejects %s, and says what to do", async (_, given, named) => {
    const { session } = sessionWith(resolving);
    await expect(readConfig(session, given, undefined)).rejects.toThrow(
      `ctx.config: ${named} is declared by no feature of this server; add its feature to buildServer`,
    );
  });
});

describe("ctx.query", () => {
  const ran: unknown[] = [];
  const query = (more: Readonly<Record<string, unknown>> = {}) => ({
    "notes.note.count": {
      kind: "query",
      name: "notes.note.count",
      run: (...given: unknown[]) => {
        ran.push(given);
        return 3;
      },
      ...more,
    },
  });
  const count = (handlers: Readonly<Record<string, unknown>>, input: unknown = {}, more = {}) => {
    ran.length = 0;
    const made = sessionWith({ handlers, ...more });
    return { ...made, result: runQuery(made.session, "notes.note.count", input, node) };
  };

  test("runs the query with its accepted input, the reading key and a log of its own name", async () => {
    const input = z.object({ n: z.string().transform(Number) });
    const output = { mismatch: "send" };
    const { result, warned } = count(
      query({ input, output: z.string() }),
      { n: "7", more: true },
      { output },
    );
    expect(await result).toBe(3);
    expect(ran).toEqual([[{ of: node, log: expect.anything() }, { n: 7 }]]);
    expect(warned).toEqual([["notes.note.count", "response.mismatch"]]);
  });

  test("does not run the query with an input that its schema refuses", async () => {
    const { result } = count(query({ input: z.object({ n: z.string() }) }), { n: 7 });
    await expect(result).rejects.toMatchObject({
      code: "validation_error",
      fields: [{ field: "n" }],
    });
    expect(ran).toEqual([]);
  });

  test("gives the output of the query's schema", async () => {
    const output: StandardSchemaV1 = z.number().transform((n) => `${n} notes`);
    expect(await count(query({ output })).result).toBe("3 notes");
    await expect(count(query({ output: z.string() })).result).rejects.toMatchObject({
      code: "response_mismatch",
    });
  });

  test.each([
    ["a reply", () => reply({ n: 3 }, { status: 201 })],
    ["a Response", async () => Response.json({ n: 3 })],
    ["a value", async () => ({ n: 3 })],
  ])("gives only the body of %s", async (_, run) => {
    expect(await count(query({ run })).result).toEqual({ n: 3 });
  });

  test("refuses a user whom the query's own rule refuses, before anything runs", async () => {
    const rule = query({ access: access.roles("editor"), input: z.never() });
    await expect(count(rule).result).rejects.toThrow(
      "Access denied: roles(editor), which notes.note.count requires",
    );
    expect(ran).toEqual([]);
    const user = { id: "eve", tenantId: "acme", roles: ["editor"] };
    const allowed = query({ access: access.roles("editor") });
    expect(await count(allowed, {}, { session: { user } }).result).toBe(3);
  });

  test.each([
    ["nothing", {}],
    ["a write", query({ kind: "write" })],
  ])("rejects a name that declares %s, and says what to do", async (_, handlers) => {
    await expect(count(handlers).result).rejects.toThrow(
      "ctx.query: no feature of this server declares the query notes.note.count; check the name, or add its feature to buildServer",
    );
    expect(ran).toEqual([]);
  });
});

test("ctx.events reads the type and range it is given, with the session's store and database", async () => {
  const opened: unknown[] = [];
  const { session } = sessionWith({
    events: { "note.kept": { keptDays: 3 }, "note.lost": {} },
    session: {
      database: "the request's",
      keptEvents: { open: async () => ({ through: (database: unknown) => opened.push(database) }) },
    },
  });
  const none = readEvents(session, "note.kept", { limit: 0 });
  expect(opened).toEqual([]);
  expect(await none.next()).toEqual({ done: true, value: undefined });
  expect(opened).toEqual(["the request's"]);
  await expect(readEvents(session, "note.lost", undefined).next()).rejects.toThrow(
    "no feature of this server keeps the event note.lost",
  );
});
