import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { buildServer, type Feature, type Server } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { serverInternals } from "../../src/app/server/server.ts";
import { takeFeatures } from "../support/recorded-features.ts";
import { writeBlocks } from "./compile.ts";
import { allBlocks, root } from "./markdown.ts";

// What readers copy: every handler of an example is called by two tenants with the same IDs, users too. What the first has
// written stays as it is, the second sees nothing of it, and no line is a warning.

/** What a handler is called with, besides what is its tenant's; nothing where it takes no input. */
const inputs: Readonly<Record<string, (tenant: string) => Readonly<Record<string, unknown>>>> = {
  "texts.text.send": () => ({ to: ["a"] }),
  "hello.greeting.show": (tenant) => ({ name: tenant }),
  "orders.order.create": (tenant) => ({ items: [`tea of ${tenant}`], item: `tea of ${tenant}` }),
  "reminders.reminder.plan": () => ({ id: "1" }),
  "reminders.reminder.cancel": () => ({ jobId: "none" }),
  "payments.payment.make": () => ({ order: "1", cents: 700 }),
  "support.retention.explain": (tenantId) => ({ tenantId }),
  "notes.note.add": (tenant) => ({ text: `milk of ${tenant}` }),
  "notes.note.create": (tenant) => ({ text: `milk of ${tenant}` }),
  "shop.item.buy": () => ({ id: "1" }),
  "orders.order.place": () => ({ id: "1", total: 7 }),
  "documents.document.mine": () => ({ after: "2026-01-01" }),
  "pages.page.create": (tenant) => ({ title: `a page of ${tenant}` }),
  "stock.item.stock": () => ({ id: "1" }),
  "mugs.mug.picture": () => ({ id: "1" }),
  "settings.theme.choose": () => ({ theme: "dark" }),
  "files.file.create": (tenant) => ({ id: "1", name: `a file of ${tenant}` }),
  "counter.count.add": () => ({ by: 2 }),
  "photos.photo.add": () => ({ id: "1", sizeMb: 2 }),
  "scans.scan.add": (tenant) => ({
    title: `a scan of ${tenant}`,
    scan: new File(["%PDF"], "scan.pdf", { type: "application/pdf" }),
  }),
  "invoices.invoice.create": () => ({ cents: 500 }),
  "chores.chore.do": (tenant) => ({ name: `dishes of ${tenant}` }),
};
/** What is answered in another way than with success, and why. */
const refused: Readonly<Record<string, number>> = {
  "code.code.pushed": 401, // webhooks that nobody has signed
  "payments.payment.received": 401,
  "letters.letter.bounced": 401,
  "shop.item.buy": 409, // that is what it shows
  "report.order.count": 403, // of systemAdmin alone
  "support.retention.explain": 403, // the same
};
/** Tables without tenants, and why that is safe. */
const systemTables: Readonly<Record<string, string>> = {
  "docs/boot-problems.md currencies": "shows a table whose rows belong to no tenant",
  "docs/schedules.md reports": "rows of the system's, which no request reads or writes",
};
/** Features that show something else than a service. */
const leftOut: Readonly<Record<string, string>> = {
  "docs/configuration.md broken": "its declaration is wrong on purpose",
  "docs/uploads.md videos": "it signs for S3, which these tests do not have",
  "docs/boot-problems.md billing": "it uses a feature of another application",
};
const written = writeBlocks(
  allBlocks().filter(({ language, code }) => language === "ts" && code.includes("defineFeature(")),
);
afterAll(() => written.remove());

function formOf(fields: object): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

interface Example {
  readonly document: string;
  /** Features that can be in one server. */
  readonly features: Feature[];
}

const recorder = join(root, "test/support/recorded-features.ts");
for (const { path } of written.files) {
  const text = readFileSync(path, "utf8")
    .replaceAll("= defineFeature(", "= recordFeature(")
    // An example of a container's entry starts nothing here.
    .replaceAll("await runContainer(", "Object(");
  writeFileSync(path, `import { recordFeature } from ${JSON.stringify(recorder)};\n${text}`);
}
const examples: Example[] = [];
const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
for (const { path, block } of written.files) {
  await import(/* @vite-ignore */ path);
  for (const feature of takeFeatures()) {
    const name = serverName(feature);
    if (leftOut[`${block.document} ${name}`] !== undefined) continue;
    const fitting = examples.find(
      ({ document, features }) =>
        document === block.document && !features.some((other) => serverName(other) === name),
    );
    if (fitting === undefined) examples.push({ document: block.document, features: [feature] });
    else fitting.features.push(feature);
  }
}
complaints.mockRestore();
const { notes } = await import("../../examples/starter/src/notes.ts");
const { reminders } = await import("../../examples/starter/src/reminders.ts");
examples.push({ document: "examples/starter", features: [notes, reminders] });

function serverName(feature: Feature): string {
  return feature.name;
}

test("the documents contain examples of features, each of which is called", () => {
  expect(examples.length).toBeGreaterThan(10);
});

describe.each(
  examples.map(
    (example) =>
      [`${example.document}: ${example.features.map(serverName).join(", ")}`, example] as const,
  ),
)("%s", (_title, { document, features }) => {
  let server: Server;
  let app: TestApp;
  beforeAll(async () => {
    // What an example calls outside answers what it takes.
    const real = globalThis.fetch;
    vi.stubGlobal("fetch", async (...parameters: Parameters<typeof fetch>) =>
      /\/\/(payments\.example\.com|stock\.internal)\//.test(String(parameters[0]))
        ? Response.json({ id: "ch_1" })
        : real(...parameters),
    );
    server = buildServer({ features, tenants: true });
    app = await startTestApp(server);
  });
  afterAll(async () => {
    vi.unstubAllGlobals();
    await app.close();
  });

  test("every table is a tenant table, or has a documented reason", () => {
    const open = [...serverInternals(server).registry.tables.values()].filter(
      ({ tenant }) => tenant !== true,
    );
    expect(
      open
        .map(({ name }) => `${document} ${name}`)
        .filter((table) => systemTables[table] === undefined),
    ).toEqual([]);
  });

  test("tenants who make the same calls neither see nor change each other's data, and cause no warning", async () => {
    const handlers = [...serverInternals(server).registry.handlers.values()].filter(
      ({ feature }) => feature !== "keelson",
    );
    const paths = new Map<string, string>();
    const callAll = async (tenant: string, kinds: readonly string[]) => {
      const said: string[] = [];
      for (const { name, kind, route, body: format } of handlers) {
        if (route === undefined || !kinds.includes(kind)) continue;
        const { method, path, body } = requestFor(
          route,
          inputs[name]?.(tenant) ?? {},
          paths.get(tenant),
        );
        const response = await app.fetch(path, {
          method,
          as: { id: "ann", tenantId: tenant, roles: ["admin"] },
          headers: { "idempotency-key": `${tenant}-${name}` },
          ...(body === undefined ? {} : { body: format === "multipart" ? formOf(body) : body }),
        });
        said.push(await response.text());
        const location = response.headers.get("location");
        if (kind === "write" && location !== null) paths.set(tenant, location);
        const expected = refused[name];
        expect([name, expected ?? (response.status < 400 ? "a success" : said.at(-1))]).toEqual([
          name,
          expected === undefined ? "a success" : response.status,
        ]);
      }
      await app.settled();
      return said.join("\n");
    };
    await callAll("acme", ["write", "query"]);
    const before = await rowsOf(app, server);
    expect(await callAll("globex", ["write", "query"])).not.toContain("acme");
    const after = await rowsOf(app, server);
    expect(before.filter((row) => !after.includes(row))).toEqual([]);
    expect(await callAll("acme", ["query"])).not.toContain("globex");

    const isExpected = ({ msg, handler }: Readonly<Record<string, unknown>>) =>
      (["request.failed", "webhook.refused"].includes(String(msg)) &&
        refused[String(handler)] !== undefined) ||
      handler === "test.app.ctx"; // the second is this test
    const warnings = app.logs.filter(
      (line) => ["warn", "error"].includes(String(line["level"])) && !isExpected(line),
    );
    expect(warnings).toEqual([]);
  });
});

/** A request of a route: its parameters are taken out of the input, or out of where the last write says that its result is. */
function requestFor(route: string, input: Readonly<Record<string, unknown>>, location = "") {
  const [method = "", pattern = ""] = route.split(" ");
  const rest = { ...input };
  const made = location.split("/").at(-1) ?? "";
  const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = rest[name] ?? (made || "1");
    delete rest[name];
    return encodeURIComponent(String(value));
  });
  if (method === "DELETE") return { method, path, body: undefined };
  if (method !== "GET") return { method, path, body: rest };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(rest)) query.set(name, String(value));
  return { method, path: query.size === 0 ? path : `${path}?${query}`, body: undefined };
}

/** Every row of the server's own tables, as text. */
async function rowsOf(app: TestApp, server: Server): Promise<readonly string[]> {
  const db = (await app.ctx({ id: "root", tenantId: "ops", roles: ["systemAdmin"] })).acrossTenants(
    "to compare",
  );
  const tables = [...serverInternals(server).registry.tables.values()];
  const found = await Promise.all(
    tables.map(({ name }) => db.send(new ScanCommand({ TableName: `keelson-${name}` }))),
  );
  return found.flatMap(({ Items = [] }, index) =>
    Items.map((item) => `${tables[index]?.name} ${JSON.stringify(item)}`),
  );
}
