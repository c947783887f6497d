import { execFile } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import type { Server } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import type { CommandContext } from "../setup/define-command.ts";
import { command } from "./tenant-command.ts";

const { usage } = command;

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const operators = JSON.stringify(new URL("../../../app/operators/index.ts", import.meta.url).href);
const schema = "{ '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }";
const server = `import { buildServer, createTenantConfig, defineFeature } from ${source};
import { setConfig } from ${operators};
const notes = defineFeature("notes", (r) => {
  const config = r.config({ keys: { limit: createTenantConfig("number", { default: 1 }) } });
  const table = r.table("notes", { partitionKey: "pk", sortKey: "sk", tenant: true });
  r.table("drafts", { partitionKey: "pk", tenant: false });
  r.event("note.written", ${schema});
  r.on("note.written", { name: "count", handler: async () => undefined });
  r.write("note.write", {
    input: ${schema},
    handler: async (ctx, { name }) => {
      await ctx.publish("note.written", { name });
      const Item = { ...(await table.key(ctx, "notes", name)), big: 12345678901234567890n };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], {});
    },
  });
  r.write("limit.set", { handler: async (ctx) => void (await setConfig(ctx, config.limit, 7)) });
});
export const server = buildServer({ features: [notes], log: { level: "error" } });`;

let folder: string;
let app: TestApp;
const at = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-tenant-"));
  await writeFile(at("server.mjs"), server);
  await writeFile(
    at("moved.mjs"),
    server.replace("{ features", `{ dynamodb: { endpoint: "http://127.0.0.1:1" }, features`),
  );
  const loaded: { readonly server: Server } = await import(
    /* @vite-ignore */ pathToFileURL(at("server.mjs")).href
  );
  app = await startTestApp(loaded.server);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

const tables = ["notes", "drafts", "outbox", "once", "config"] as const;
type Table = (typeof tables)[number];
type Row = Readonly<Record<string, unknown>>;
const database = async () =>
  (await app.ctx({ id: "root", tenantId: "ops", roles: ["systemAdmin"] })).acrossTenants("a test");
async function rowsOf(table: Table): Promise<readonly Row[]> {
  const { Items = [] } = await (await database()).send(
    new ScanCommand({ TableName: `keelson-${table}` }),
  );
  return Items;
}
async function countsOf(): Promise<Readonly<Record<Table, number>>> {
  const counts = await Promise.all(
    tables.map(async (table) => [table, (await rowsOf(table)).length] as const),
  );
  return Object.fromEntries(counts) as Record<Table, number>; // safe: made of all tables
}

/** What each of two tenants has in the beginning: notes, claims, an event that waits, a setting with its history. */
const seed = { notes: 2, drafts: 1, outbox: 1, once: 2, config: 2 };
const ofBoth = { notes: 4, drafts: 1, outbox: 2, once: 4, config: 4 };
let seeded: readonly (readonly [Table, Row])[] = [];
beforeAll(async () => {
  for (const tenantId of ["acme", "acme2"]) {
    const as = { id: "ann", tenantId, roles: ["systemAdmin"] };
    await app.call("notes.note.write", { name: "a" }, { as, requestId: "r1" });
    app.faults.before("PutEvents", 1).fail("ServiceUnavailable");
    await app.call("notes.note.write", { name: "ö" }, { as, requestId: "r2" });
    await app.call("notes.limit.set", {}, { as });
  }
  await (await database()).send(
    new PutCommand({ TableName: "keelson-drafts", Item: { pk: "acme/d" } }),
  );
  seeded = (
    await Promise.all(
      tables.map(async (table) => (await rowsOf(table)).map((row) => [table, row] as const)),
    )
  ).flat();
});
const seedAgain = async () => {
  const db = await database();
  await Promise.all(
    seeded.map(([table, Item]) => db.send(new PutCommand({ TableName: `keelson-${table}`, Item }))),
  );
};
beforeEach(seedAgain);

const run = (args: readonly string[], context: Partial<CommandContext> = {}) =>
  ranCommand(["tenant", ...args], {
    env: app.env,
    clock: { now: () => 0 },
    wait: async () => undefined,
    ...context,
  });
const exportOf = (tenant: string, ...options: readonly string[]) => [
  "export",
  at("server.mjs"),
  tenant,
  ...options,
];
const eraseOf = (tenant: string, ...options: readonly string[]) => [
  "erase",
  at("server.mjs"),
  tenant,
  ...options,
];
const linesOf = async (name: string) =>
  (await readFile(at(name), "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

const notCovered = [
  "the table keelson-drafts, which has no `tenant: true`",
  "tables that no feature declares",
  "messages in queues and dead-letter queues, and requests and messages in flight",
  "backups, point-in-time recovery and exports of tables",
  "logs, metrics and traces, and data in the memory of running processes",
  "everything outside of these tables: buckets, caches, other services",
];
const listed = ["not covered:", ...notCovered.map((text) => `- ${text}`)];

describe("keelson tenant export", () => {
  afterEach(async () => {
    for (const name of await readdir(folder)) if (!name.endsWith(".mjs")) await rm(at(name));
  });

  test("writes a header and each row of the tenant to a file only the owner can read, and prints a receipt", async () => {
    const { code, out, err } = await run(exportOf("acme", "--out", at("acme.ndjson")));
    expect({ code, out, err }).toEqual({
      code: 0,
      out: [
        "keelson-notes: 2 rows exported",
        "keelson-outbox: 1 row exported",
        "keelson-once: 2 rows exported",
        "keelson-config: 2 rows exported",
        'tenant "acme": 7 rows exported',
        ...listed,
      ],
      err: "",
    });
    const [header, ...lines] = await linesOf("acme.ndjson");
    const exportedAt = "1970-01-01T00:00:00.000Z";
    const known = { keelson: "tenant-export", format: 1, tenant: "acme" };
    expect(header).toEqual({
      ...known,
      exportedAt,
      tables: ["notes", "outbox", "once", "config"],
      notCovered,
    });
    expect(lines.filter(({ table }) => table === "notes")).toEqual([
      {
        table: "notes",
        item: { pk: { S: "acme/notes" }, sk: { S: "a" }, big: { N: "12345678901234567890" } },
      },
      {
        table: "notes",
        item: { pk: { S: "acme/notes" }, sk: { S: "ö" }, big: { N: "12345678901234567890" } },
      },
    ]);
    const [event] = lines.filter(({ table }) => table === "outbox");
    expect(JSON.parse(event.item.envelope.S)).toMatchObject({
      type: "note.written",
      tenantId: "acme",
      payload: { name: "ö" },
    });
    expect(JSON.stringify(lines)).not.toMatch(/acme2|proof/);
    expect((await stat(at("acme.ndjson"))).mode & 0o777).toBe(0o600);
    expect(await countsOf()).toEqual(ofBoth);
  });

  test("overwrites a file only with --force", async () => {
    await writeFile(at("here"), "kept");
    const { code, err } = await run(exportOf("acme", "--out", at("here")));
    expect([code, err.split("\n")[0]]).toEqual([
      2,
      `keelson: ${JSON.stringify(at("here"))} exists already; use --force to replace it`,
    ]);
    expect(await readFile(at("here"), "utf8")).toBe("kept");
    const toFolder = await run(exportOf("acme", "--out", at("."), "--force"));
    expect([toFolder.code, toFolder.err.split("\n")[0]]).toEqual([
      2,
      `keelson: ${JSON.stringify(at("."))} is a directory; name a file`,
    ]);
    expect((await run(exportOf("acme", "--out", at("here"), "--force"))).code).toBe(0);
    expect(await linesOf("here")).toHaveLength(8);
  });

  test("leaves no partial file when it fails, and names the cause", async () => {
    const env = { ...app.env, KEELSON_TABLE_CONFIG: "gone" };
    const { code, err } = await run(exportOf("acme", "--out", at("half")), { env });
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("keelson: gone: ResourceNotFoundException: "),
    ]);
    await expect(access(at("half"))).rejects.toThrow("ENOENT");
    expect((await run(exportOf("acme", "--out", at("half")))).code).toBe(0);
    expect(await linesOf("half")).toHaveLength(8);
  });

  test("writes only a header for an unknown tenant", async () => {
    const { code, out } = await run(exportOf("__proto__", "--out", at("nobody"), "--json"));
    expect([code, JSON.parse(out.join("\n"))]).toMatchObject([
      0,
      { action: "export", tenant: "__proto__", rows: 0, isDone: true },
    ]);
    expect(await linesOf("nobody")).toHaveLength(1);
  });

  test("uses the endpoint from the server's own options", async () => {
    const { code, err } = await run(["export", at("moved.mjs"), "acme", "--out", at("moved")]);
    expect([code, err]).toEqual([1, expect.stringContaining("keelson-notes: ")]);
  });
});

describe("keelson tenant erase", () => {
  const gone = Object.fromEntries(
    tables.map((table) => [table, ofBoth[table] - (table === "drafts" ? 0 : seed[table])]),
  );

  test("deletes only the tenant's rows, and a second run finds nothing", async () => {
    const { code, out, err } = await run(eraseOf("acme", "--yes"));
    expect({ code, out, err }).toEqual({
      code: 0,
      out: [
        "keelson-notes: 2 rows erased",
        "keelson-outbox: 1 row erased",
        "keelson-once: 2 rows erased",
        "keelson-config: 2 rows erased",
        'tenant "acme": 7 rows erased in 2 passes',
        ...listed,
      ],
      err: "",
    });
    expect(await countsOf()).toEqual(gone);
    expect(JSON.stringify(await rowsOf("config"))).toContain("config#tenant#acme2");
    const second = await run(eraseOf("acme", "--yes", "--json"));
    expect([second.code, JSON.parse(second.out.join("\n"))]).toEqual([
      0,
      {
        action: "erase",
        tenant: "acme",
        at: "1970-01-01T00:00:00.000Z",
        tables: (["notes", "outbox", "once", "config"] as const).map((table) => ({
          table,
          tableName: `keelson-${table}`,
          scanned: seed[table],
          rows: 0,
        })),
        rows: 0,
        passes: 1,
        isDone: true,
        notCovered,
      },
    ]);
  });

  test("only counts with --dry-run, without a confirmation", async () => {
    const { code, out } = await run(eraseOf("acme", "--dry-run"), {
      ask: () => Promise.reject(new Error("not to be asked")),
    });
    expect([code, out.slice(0, 5)]).toEqual([
      0,
      [
        "keelson-notes: 2 rows found",
        "keelson-outbox: 1 row found",
        "keelson-once: 2 rows found",
        "keelson-config: 2 rows found",
        'tenant "acme": 7 rows found',
      ],
    ]);
    expect(await countsOf()).toEqual(ofBoth);
  });

  test("asks for the tenant's ID at a terminal, and erases nothing if another one is typed", async () => {
    const asked: string[] = [];
    const answering = (answer: string) => ({
      ask: async (question: string) => {
        asked.push(question);
        return answer;
      },
    });
    const wrong = await run(eraseOf("acme"), answering("acme2"));
    expect([wrong.code, wrong.err]).toEqual([1, "keelson: that is another ID; nothing was erased"]);
    expect(await countsOf()).toEqual(ofBoth);
    expect((await run(eraseOf("acme"), answering("acme"))).code).toBe(0);
    expect(await countsOf()).toEqual(gone);
    const names = "keelson-notes, keelson-outbox, keelson-once, keelson-config";
    const place = app.env["AWS_ENDPOINT_URL"];
    expect(asked[0]).toBe(
      `Every row of "acme" in ${names} at ${place} will be gone. Type the tenant's ID: `,
    );
    await run(eraseOf("acme"), { ...answering("no"), env: {} });
    expect(asked[2]).toContain(" at AWS will be gone.");
  });

  test("shows its progress at a terminal, and clears it at the end", async () => {
    const shown: string[] = [];
    const show = {
      progress: (text: string) => shown.push(text),
      print: (text: string) => shown.push(text),
    };
    await run(eraseOf("acme", "--yes"), show);
    const end = shown.indexOf("");
    expect([...shown.slice(0, 2), ...shown.slice(end - 1, end + 2)]).toEqual([
      "pass 1, keelson-notes (1 of 4): 0 rows looked at, 2 erased",
      "pass 1, keelson-outbox (2 of 4): 4 rows looked at, 2 erased",
      "pass 2, all tables: 21 rows looked at, 7 erased",
      "",
      "keelson-notes: 2 rows erased",
    ]);
    const env = { ...app.env, KEELSON_TABLE_CONFIG: "gone" };
    await run(eraseOf("acme", "--yes"), { ...show, env, complain: (text) => shown.push(text) });
    expect(shown.slice(-2)).toEqual(["", expect.stringContaining("keelson: gone: ")]);
  });
});

test("without a terminal, the program prints the receipt and no progress", async () => {
  const program = [
    join(import.meta.dirname, "../main.ts"),
    "tenant",
    ...eraseOf("acme", "--dry-run"),
  ];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, program, { env: app.env });
  expect([stdout.split("\n")[4], stderr]).toEqual(['tenant "acme": 7 rows found', ""]);
  await expect(
    promisify(execFile)(process.execPath, [...program.slice(0, -1)], { env: app.env }),
  ).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("erase cannot ask for confirmation"),
  });
});

/** Stands between the command and its tables: from a call on, before it or after it, nobody answers any more. */
interface Cutter {
  readonly http: HttpServer;
  readonly env: typeof app.env;
  readonly cut: (calls: number) => void;
  readonly calls: () => number;
  /** What somebody else does once rows are deleted. */
  meanwhile: () => Promise<unknown>;
}

async function startCutter(): Promise<Cutter> {
  let [calls, left] = [0, Number.POSITIVE_INFINITY];
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    // An error that the SDK does not try again.
    const refuse = () =>
      response
        .writeHead(400)
        .end(JSON.stringify({ __type: "ValidationException", message: "cut" }));
    calls += 1;
    if (left <= 0) return refuse();
    left -= 0.5;
    const {
      "content-type": type = "",
      "x-amz-target": target = "",
      authorization = "",
    } = request.headers;
    const headers = { "content-type": type, "x-amz-target": String(target), authorization };
    const answer = await fetch(String(app.env["AWS_ENDPOINT_URL"]), {
      method: "POST",
      headers,
      body: Buffer.concat(chunks),
    });
    if (left <= 0) return refuse();
    left -= 0.5;
    if (String(target).endsWith("BatchWriteItem")) await cutter.meanwhile();
    return response
      .writeHead(answer.status, { "content-type": "application/x-amz-json-1.0" })
      .end(await answer.text());
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  const endpoint = `http://127.0.0.1:${(http.address() as AddressInfo).port}`; // safe: it listens on a port
  const cutter: Cutter = {
    http,
    meanwhile: async () => undefined,
    env: { ...app.env, AWS_ENDPOINT_URL: endpoint, AWS_ENDPOINT_URL_DYNAMODB: endpoint },
    cut: (count) => {
      [calls, left] = [0, count];
    },
    calls: () => calls,
  };
  return cutter;
}

let cutter: Cutter;
beforeAll(async () => {
  cutter = await startCutter();
});
afterAll(() => {
  cutter.http.closeAllConnections();
  cutter.http.close();
});

test("an erasure gives up after five passes while the tenant keeps writing, exits with 1 and gives advice", async () => {
  const { env } = cutter;
  cutter.meanwhile = seedAgain;
  const { code, out } = await run(eraseOf("acme", "--yes", "--state", at("state")), { env });
  cutter.meanwhile = async () => undefined;
  expect([code, out[5]]).toEqual([1, "rows keep coming: stop the tenant, then run this again"]);
  expect(out[4]).toMatch(/^tenant "acme": \d+ rows erased in 5 passes$/);
  expect((await run(eraseOf("acme", "--yes", "--state", at("state")), { env })).code).toBe(0);
});

describe("interrupted at every call and run again", () => {
  test("an export with --state resumes, and writes each row once", async () => {
    const args = exportOf("acme", "--out", at("cut"), "--state", at("state"), "--force");
    const { env } = cutter;
    cutter.cut(Number.POSITIVE_INFINITY);
    await run(args, { env });
    const [whole, calls] = [await linesOf("cut"), cutter.calls()];
    expect([whole.length, calls]).toEqual([8, 4]);
    for (let cut = 0; cut < calls; cut += 0.5) {
      await rm(at("cut"));
      cutter.cut(cut);
      const { code, err } = await run(args, { env });
      expect([code, err]).toEqual([1, expect.stringContaining("ValidationException: cut")]);
      await expect(access(at("cut"))).rejects.toThrow("ENOENT");
      cutter.cut(Number.POSITIVE_INFINITY);
      expect((await run(args, { env })).code).toBe(0);
      expect(await linesOf("cut")).toEqual(whole);
      expect(cutter.calls()).toBe(calls - Math.floor(cut)); // what was answered is not asked again
      expect((await readdir(folder)).filter((name) => /state|part/.test(name))).toEqual([]);
    }
  });

  test("an erasure deletes all rows, with and without --state", async () => {
    const { env } = cutter;
    cutter.cut(Number.POSITIVE_INFINITY);
    await run(eraseOf("acme", "--yes"), { env });
    const calls = cutter.calls();
    expect(calls).toBe(12);
    for (let cut = 0; cut < calls; cut += 0.5) {
      const args = eraseOf(
        "acme",
        "--yes",
        ...(Number.isInteger(cut) ? ["--state", at("state")] : []),
      );
      await seedAgain();
      cutter.cut(cut);
      expect((await run(args, { env })).code).toBe(1);
      cutter.cut(Number.POSITIVE_INFINITY);
      expect((await run(args, { env })).code).toBe(0);
      expect(await countsOf()).toEqual({ notes: 2, drafts: 1, outbox: 1, once: 2, config: 2 });
    }
    await expect(access(at("state"))).rejects.toThrow("ENOENT");
  });

  test.each([
    ["Region", (env: typeof app.env) => ({ ...env, AWS_REGION: "eu-west-1" })],
    ["endpoint", (_: typeof app.env) => app.env],
  ])("refuses the state file of an export from another %s", async (_, elsewhere) => {
    const args = exportOf("acme", "--out", at("moved"), "--state", at("state"), "--force");
    const endpoint = String(cutter.env["AWS_ENDPOINT_URL"]).replace("//", "//ann:hidden@");
    const env = { ...cutter.env, AWS_ENDPOINT_URL_DYNAMODB: endpoint };
    cutter.cut(2);
    expect((await run(args, { env })).code).toBe(1);
    expect(await readFile(at("state"), "utf8")).not.toContain("hidden");
    cutter.cut(Number.POSITIVE_INFINITY);
    const { code, err } = await run(args, { env: elsewhere(env) });
    expect([code, err]).toEqual([
      1,
      `keelson: ${at("state")} is not of this export; remove it, or name another file`,
    ]);
    expect((await run(args, { env })).code).toBe(0);
  });

  test("refuses a state file that belongs to another command", async () => {
    await writeFile(at("state"), "{}");
    const { code, err } = await run(eraseOf("acme", "--yes", "--state", at("state")));
    expect([code, err]).toEqual([
      1,
      `keelson: ${at("state")} is not of this erase; remove it, or name another file`,
    ]);
    expect(await countsOf()).toEqual(ofBoth);
  });
});

describe("keelson tenant on wrong usage", () => {
  test.each([
    [[], /no action is given; use list, create, suspend, resume, export or erase/],
    [["purge"], /there is no action "purge"; use list, create, suspend, resume, export or erase/],
    [["erase"], /no module is given; use keelson tenant erase <module> <id>/],
    [["export", "server.mjs"], /no tenant is given; use keelson tenant export server.mjs <id>/],
    [["export", "server.mjs", "acme"], /--out is missing; use --out <file>/],
    [["export", "server.mjs", "acme", "--out", ""], /--out is missing/],
    [["export", "server.mjs", "acme", "--out", "f", "--yes"], /--yes is not an option of export/],
    [
      ["export", "server.mjs", "acme", "--out", "f", "--dry-run"],
      /--dry-run is not an option of export/,
    ],
    [["erase", "server.mjs", "acme", "--out", "f"], /--out is not an option of erase/],
    [["erase", "server.mjs", "acme", "--force"], /--force is not an option of erase/],
    [
      ["erase", "server.mjs", "acme", "--dry-run", "--state", "s"],
      /--dry-run does not change rows, so --state has no effect/,
    ],
    [["erase", "server.mjs", "acme", "more"], /unexpected argument "more"/],
    [
      ["erase", "server.mjs", "acme"],
      /erase cannot ask for confirmation without a terminal; use --yes, or --dry-run to count only/,
    ],
    [["erase", "no-such.mjs", "acme", "--yes"], /there is no module "no-such.mjs"/],
    [
      ["erase", "server.mjs", "", "--yes"],
      /the tenant is not a string of 1 to 256 characters without control characters/,
    ],
    [["erase", "server.mjs", "a\nb", "--yes"], /the tenant is not a string/],
    [["erase", "server.mjs", "x".repeat(10_000), "--yes"], /the tenant is not a string/],
    [["erase", "server.mjs", "\ud800", "--yes"], /the tenant is not a string/],
    [["erase", "--purge"], /there is no option --purge/],
  ] as const)("%# exits with 2 and explains the mistake", async (args, message) => {
    const { code, out, err } = await run(args);
    expect([code, out, err]).toEqual([2, [], expect.stringMatching(message)]);
    expect(err).toContain("Run `keelson tenant --help`.");
  });

  test("--help prints the usage", async () => {
    expect(await run(["erase", "--help"])).toEqual({ code: 0, out: [usage], err: "" });
  });
});
