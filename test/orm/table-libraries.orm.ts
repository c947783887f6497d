import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { TransactWriteCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature, type Feature, type ReadContext } from "keelson";
import { rolldownPlugin } from "keelson/bundle";
import { lambdaEvent, startTestApp, type TestApp } from "keelson/testing";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nameOf } from "../docs/compile.ts";
import { codeBlocks, root, textOf } from "../docs/markdown.ts";

// The code that needs a library is `text` on these pages, because the repository does not install the libraries.
const pages = ["docs/electrodb.md", "docs/dynamodb-toolbox.md"];

const folder = join(import.meta.dirname, ".keelson"); // git ignores it
let directory = "";

beforeAll(async () => {
  // Safe: so it is declared in scripts/install.mjs, which has no types.
  const { installPackage } = (await import(
    pathToFileURL(join(root, "scripts/install.mjs")).href
  )) as { installPackage(path: string, say: (line: string) => void): void };
  installPackage("test/orm", console.log);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  directory = mkdtempSync(join(folder, "docs-"));
  for (const block of pages.flatMap((page) => codeBlocks(page, textOf(page)))) {
    const name = nameOf(block);
    if (block.language === "text" && name !== undefined)
      writeFileSync(join(directory, name), block.code);
  }
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("the code compiles", () => {
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      moduleDetection: "force",
      // One copy of the AWS SDK, as in an application.
      paths: {
        keelson: [join(root, "src/index.ts")],
        "@aws-sdk/*": [join(root, "node_modules/@aws-sdk/*")],
      },
    },
    include: ["*.ts"],
  };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
  const typescript = createRequire(import.meta.url).resolve("typescript/package.json");
  const compiler = join(dirname(typescript), "bin", "tsc");
  const options = { cwd: directory, encoding: "utf8" } as const;
  const { stdout } = spawnSync(
    process.execPath,
    [compiler, "-p", ".", "--pretty", "false"],
    options,
  );
  expect(stdout).toBe("");
});

const ann = { id: "ann", tenantId: "Acme" };
const gil = { id: "gil", tenantId: "globex" };

async function appOf(file: string, name: string): Promise<TestApp> {
  const exported: Readonly<Record<string, Feature>> = await import(join(directory, file));
  const feature = exported[name];
  if (feature === undefined) throw new Error(`${file} does not export ${name}`);
  return startTestApp(buildServer({ features: [feature, await foreignRows()] }));
}

describe.each([
  ["electro-notes.ts", "electroNotes"],
  ["toolbox-notes.ts", "toolboxNotes"],
])("%s", (file, name) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await appOf(file, name);
    for (const id of ["1", "2", "3"])
      expect((await create(app, id, `note ${id}`)).status).toBe(201);
  });
  afterAll(() => app.close());

  test("works in a Lambda bundle", async () => {
    const bundled = await bundleOf(file, name);
    const headers = {
      authorization: `Bearer ${await app.token({ id: "hal", tenantId: "initech" })}`,
    };
    const events = [
      lambdaEvent("httpApi", {
        method: "POST",
        path: "/notes",
        headers,
        body: { id: "L", text: "a" },
      }),
      lambdaEvent("httpApi", { path: "/notes/L", headers }),
    ];
    const invoke = [join(directory, "invoke.mjs"), bundled, JSON.stringify(events)];
    const env = { ...process.env, ...app.env, NODE_ENV: "test" };
    const { stdout } = spawnSync(process.execPath, invoke, { encoding: "utf8", env });
    expect(stdout.split("\n").filter((line) => line.startsWith("["))).toEqual(["[201,200]"]);
  });

  test("creates a note once", async () => {
    const refused = await create(app, "1", "another");
    expect([refused.status, await shown(app, "1")]).toEqual([409, { id: "1", text: "note 1" }]);
  });

  test("keeps upper case in keys", async () => {
    expect((await create(app, "Z", "upper")).status).toBe(201);
    expect(await shown(app, "Z")).toEqual({ id: "Z", text: "upper" });
    expect((await app.fetch("/notes/z", { as: ann })).status).toBe(404);
  });

  test("shows a note to its tenant only", async () => {
    expect(await shown(app, "2")).toEqual({ id: "2", text: "note 2" });
    expect((await app.fetch("/notes/2", { as: gil })).status).toBe(404);
  });

  test("lists notes in pages", async () => {
    type Page = { items: { id: string }[]; after?: string };
    const list = async (query: string, as = ann) =>
      (await (await app.fetch(`/notes?${query}`, { as })).json()) as Page;
    const ids = (page: Page) => page.items.map(({ id }) => id);
    const first = await list("limit=2");
    expect([ids(first), first.after]).toEqual([["1", "2"], "2"]);
    const second = await list("limit=3&after=2");
    expect([ids(second), second.after]).toEqual([["3", "Z"], undefined]);
    expect(ids(await list("after=1", gil))).toEqual([]);
  });

  test("edits a note of its tenant", async () => {
    const edit = (id: string, as = ann) =>
      app.fetch(`/notes/${id}`, { method: "PUT", body: { text: "edited" }, as });
    expect((await edit("3")).status).toBe(200);
    expect(await shown(app, "3")).toEqual({ id: "3", text: "edited" });
    expect([(await edit("3", gil)).status, (await edit("9")).status]).toEqual([409, 409]);
  });
});

function create(app: TestApp, id: string, text: string) {
  return app.fetch("/notes", { body: { id, text }, as: ann });
}

async function shown(app: TestApp, id: string): Promise<unknown> {
  return (await app.fetch(`/notes/${id}`, { as: ann })).json();
}

describe("ElectroDB", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await appOf("electro-notes.ts", "electroNotes");
  });
  afterAll(() => app.close());

  test("reads all pages by its own cursor", async () => {
    for (const id of ["1", "2"]) await create(app, id, "four");
    const size = await app.fetch("/notes-size", { as: ann });
    expect(await size.json()).toEqual({ characters: 8 });
  });

  test.each([
    ["with originalErr, the caller gets the error of the wall", "electro-get", 403],
    ["without it, the error is wrapped", "electro-wrapped", 500],
    ["a scan is refused", "electro-scan", 403],
    ["a transaction of its own is checked", "electro-transaction", 403],
  ])("%s", (_name, row, status) => refuses(app, row, status));

  test("a transaction of its own writes the rows of the caller's tenant", async () => {
    const { status } = await app.fetch("/own/electro-transaction", { as: ann });
    expect(status).toBe(200);
  });

  test("parses the items of table.page", async () => {
    const response = await app.fetch("/own/electro-parse", { as: ann });
    expect(await response.json()).toEqual([{ pk: "Acme/rows", id: "1", text: "own" }]);
  });
});

describe("DynamoDB-Toolbox", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await appOf("toolbox-notes.ts", "toolboxNotes");
  });
  afterAll(() => app.close());

  test.each([
    ["the caller gets the error of the wall", "toolbox-get"],
    ["a transaction of its own is checked", "toolbox-transaction"],
  ])("%s", (_name, row) => refuses(app, row, 403));

  test("a transaction of its own writes the rows of the caller's tenant", async () => {
    const { status } = await app.fetch("/own/toolbox-transaction", { as: ann });
    expect(status).toBe(200);
  });

  test("formats the items of table.page", async () => {
    const response = await app.fetch("/own/toolbox-format", { as: ann });
    expect(await response.json()).toEqual([{ pk: "Acme/rows", id: "1", text: "own" }]);
  });
});

/** Bundles a function with the feature; `invoke.mjs` prints the statuses with which it answers events. */
async function bundleOf(file: string, name: string): Promise<string> {
  const source = (path: string) => join(root, "src", path);
  const input = join(directory, `lambda-${name}.ts`);
  writeFileSync(
    input,
    `import { buildServer } from "keelson";
import { lambdaHttp } from "keelson/lambda";
import { ${name} } from "./${file}";
export const http = lambdaHttp(buildServer({ features: [${name}] }));
`,
  );
  writeFileSync(
    join(directory, "invoke.mjs"),
    `const { http } = await import(process.argv[2]);
const context = { awsRequestId: "a1", functionName: "notes", getRemainingTimeInMillis: () => 30_000 };
const statuses = [];
for (const event of JSON.parse(process.argv[3])) statuses.push((await http(event, context)).statusCode);
console.log(JSON.stringify(statuses));
process.exit();
`,
  );
  const build = await rolldown({
    input,
    plugins: [rolldownPlugin()],
    resolve: {
      alias: {
        "keelson/lambda": source("hosts/lambda/index.ts"),
        keelson: source("index.ts"),
      },
    },
  });
  const dir = join(directory, `bundle-${name}`);
  await build.write({ dir, entryFileNames: "lambda.mjs" });
  return join(dir, "lambda.mjs");
}

async function refuses(app: TestApp, row: string, expected: number): Promise<void> {
  const { status } = await app.fetch(`/foreign/${row}`, { as: ann });
  expect(status).toBe(expected);
  const [line] = app.logs.filter(({ msg }) => msg === "tenant.wall").slice(-1);
  expect(line).toMatchObject({ level: "error", table: "rows", tenantId: "Acme" });
}

/** A feature that reaches rows of the caller's tenant, or of another one. */
async function foreignRows(): Promise<Feature> {
  // Safe: the libraries are not installed where this file is compiled.
  // biome-ignore lint/suspicious/noExplicitAny: so their types are unknown here
  const load = (library: string): Promise<any> => import(/* @vite-ignore */ library);
  const { createWriteTransaction, Entity: ElectroEntity } = await load("electrodb");
  const toolbox = {
    ...(await load("dynamodb-toolbox")),
    ...(await load("dynamodb-toolbox/entity/actions/transactWrite")),
  };
  const composite = (name: string) => ({ field: name, composite: [name], casing: "none" });
  const required = { type: "string", required: true };
  const Row = new ElectroEntity({
    model: { service: "rows", entity: "row", version: "1" },
    attributes: { pk: required, id: required, text: required },
    indexes: { byId: { pk: composite("pk"), sk: composite("id") } },
  });
  const key = (name: string) => toolbox[name]().key();
  const schema = toolbox.item({ pk: key("string"), id: key("string"), text: toolbox.string() });

  return defineFeature("rows", (r) => {
    const table = r.table("rows", { partitionKey: "pk", sortKey: "id", tenant: true });
    for (const [path, ownerOf] of [
      ["own", () => "Acme"],
      ["foreign", () => "globex"],
    ] as const) {
      const Key = { pk: `${ownerOf()}/rows`, id: "1" };
      const rowsOf = (documentClient: unknown) =>
        new toolbox.Entity({
          name: "row",
          schema,
          table: new toolbox.Table({
            documentClient,
            name: table.name,
            partitionKey: { name: "pk", type: "string" },
            sortKey: { name: "id", type: "string" },
          }),
        });
      const commands: Readonly<Record<string, (client: ReadContext["db"]) => Promise<unknown>>> = {
        "electro-get": (client) =>
          Row.get(Key).go({ client, table: table.name, originalErr: true }),
        "electro-wrapped": (client) => Row.get(Key).go({ client, table: table.name }),
        "electro-scan": (client) => Row.scan.go({ client, table: table.name, originalErr: true }),
        "electro-transaction": (client) =>
          client.send(
            new TransactWriteCommand(
              // biome-ignore lint/suspicious/noExplicitAny: of a library without types here
              createWriteTransaction({ Row }, ({ Row: row }: any) => [
                row.upsert({ ...Key, text: "own" }).commit({ table: table.name }),
              ]).params(),
            ),
          ),
        "toolbox-get": (client) => rowsOf(client).build(toolbox.GetItemCommand).key(Key).send(),
        "toolbox-transaction": (client) =>
          toolbox.executeTransactWrite(
            { documentClient: client },
            rowsOf(client)
              .build(toolbox.PutTransaction)
              .item({ ...Key, text: "own" }),
          ),
      };
      for (const [name, command] of Object.entries(commands)) {
        r.query(`${path}.${name}`, {
          route: `GET /${path}/${name}`,
          access: access.tenant,
          handler: async (ctx) => {
            await command(ctx.db);
            return {};
          },
        });
      }
      if (path === "foreign") continue;
      r.query("own.electro-parse", {
        route: "GET /own/electro-parse",
        access: access.tenant,
        handler: async (ctx) => {
          const { items } = await table.page(ctx, { partition: "rows", limit: 10 });
          return Row.parse({ Items: [...items] }).data;
        },
      });
      r.query("own.toolbox-format", {
        route: "GET /own/toolbox-format",
        access: access.tenant,
        handler: async (ctx) => {
          const { items } = await table.page(ctx, { partition: "rows", limit: 10 });
          const formatter = rowsOf(ctx.db).build(toolbox.EntityFormatter);
          return items
            .map((item) => formatter.format(item))
            .map(({ pk, id, text }) => ({ pk, id, text }));
        },
      });
    }
  });
}
