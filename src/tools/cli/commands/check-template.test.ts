import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";

const [keelson, lambda] = ["../../../index.ts", "../../../hosts/lambda/index.ts"].map((path) =>
  JSON.stringify(new URL(path, import.meta.url).href),
);
const moduleOf = (declarations: string) =>
  `import { access, buildServer, defineFeature } from ${keelson};
export const server = buildServer({ features: [defineFeature("jugs", (r) => { ${declarations} })] });`;
const jugs = `r.table("jugs", { partitionKey: "pk", tenant: false });
r.query("jug.show", { route: "GET /jugs/:id", access: access.everyone, handler: async () => undefined });`;
const Environment = {
  Variables: { KEELSON_TABLE_CONFIG: "c", KEELSON_TABLE_ONCE: "o", KEELSON_TABLE_JUGS: "j" },
};
const functionOf = (Handler: string) => ({
  Type: "AWS::Lambda::Function",
  Properties: { Handler, Environment },
});
const timed = `import { lambdaSchedule } from ${lambda};
import { server } from "../timed.mjs";
export const schedule = lambdaSchedule(server);`;
const files = {
  "server.mjs": moduleOf(jugs),
  "more.mjs": moduleOf(`${jugs} r.table("lids", { partitionKey: "pk", tenant: false });`),
  "lambda.mjs": `import { lambdaHandler, lambdaHttp } from ${lambda};
import { server } from "./server.mjs";
export const http = lambdaHttp(server);
export const jugsJugShow = lambdaHandler(server, "jugs.jug.show");`,
  "other.mjs": `import { lambdaHandler } from ${lambda};
import { server } from "./server.mjs";
export const http = lambdaHandler(server, "jugs.jug.show");`,
  "broken.mjs": `import { lambdaHandler } from ${lambda};
import { server } from "./server.mjs";
export const jugsJugShow = lambdaHandler(server, "jugs.jug.list");`,
  "timed.mjs": moduleOf(
    `${jugs} r.schedule("jug.wash", { cron: "0 3 * * *", handler: async () => undefined });`,
  ),
  "timed/lambda.mjs": timed,
  "timed/lambda.ts": timed,
  "functions.json": JSON.stringify({
    Resources: { Http: functionOf("lambda.http"), Show: functionOf("lambda.jugsJugShow") },
  }),
  "other.json": JSON.stringify({ Resources: { Http: functionOf("other.http") } }),
};

let folder: string;
const at = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-check-"));
  await mkdir(at("timed"));
  for (const [name, text] of Object.entries(files)) await writeFile(at(name), text);
  await run("server.mjs", "--part", "data", "--out", folder);
});
afterAll(() => rm(folder, { recursive: true }));

const run = (module: string, ...args: readonly string[]) =>
  ranCommand(["infra", at(module), ...args]);

describe("keelson infra --check", () => {
  test("reports that a template fits the server, and writes no file", async () => {
    const before = await readdir(folder);
    const file = at("data-dev.json");
    expect(await run("server.mjs", "--check", file)).toEqual({
      code: 0,
      out: [`${file}: fits the server`],
      err: "",
    });
    const [functions, entry] = [at("functions.json"), at("lambda.mjs")];
    expect(await run("server.mjs", "--check", functions, "--entry", entry)).toEqual({
      code: 0,
      out: [`${functions}: fits the server and ${entry}`],
      err: "",
    });
    expect(await readdir(folder)).toEqual(before);
  });

  test("names a table that is missing from the template", async () => {
    const file = at("data-dev.json");
    expect(await run("more.mjs", "--check", file)).toEqual({
      code: 1,
      out: [],
      err: `keelson: ${file}: the table lids is declared, and the template has no LidsTable`,
    });
  });

  test("compares the front and its streaming with what is asked for", async () => {
    const file = at("front/all-dev.json");
    await run("server.mjs", "--front", "url", "--stream", "--out", at("front"));
    const streaming = ["--check", file, "--stream"];
    expect(await run("server.mjs", ...streaming)).toMatchObject({ code: 0 });
    expect(await run("server.mjs", ...streaming, "--front", "url")).toMatchObject({ code: 0 });
    expect(await run("server.mjs", ...streaming, "--front", "rest")).toEqual({
      code: 1,
      out: [],
      err: expect.stringContaining("--front rest is given, and the template's front is url"),
    });
    expect(await run("server.mjs", "--check", file, "--entry", at("lambda.mjs"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("add { stream: true } to lambda.http"),
    });
  });

  test("looks for the index.js of a Web Function beside a bundled entry", async () => {
    const file = at("web/all-dev.json");
    await run("timed.mjs", "--front", "web", "--out", at("web"));
    const check = (entry: string) => run("timed.mjs", "--check", file, "--entry", at(entry));
    expect(await check("timed/lambda.mjs")).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        "a Web Function loads index.js, which is missing next to the entry",
      ),
    });
    expect(await check("timed/lambda.ts")).toMatchObject({ code: 0 });
    await writeFile(at("timed/index.js"), "");
    expect(await check("timed/lambda.mjs")).toMatchObject({ code: 0 });
  });

  test("names an export that is the wrong function, and explains why an entry cannot be loaded", async () => {
    expect(
      await run("server.mjs", "--check", at("other.json"), "--entry", at("other.mjs")),
    ).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        'Http calls other.http, which has to be lambdaHttp(server) and is lambdaHandler(server, "jugs.jug.show")',
      ),
    });
    expect(
      await run("server.mjs", "--check", at("functions.json"), "--entry", at("broken.mjs")),
    ).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /broken.mjs cannot be loaded: lambdaHandler: jugs.jug.list is not a handler with a route; .* jugs.jug.show/,
      ),
    });
  });

  test.each([
    [["--check", "no.json"], /^keelson: --check "no.json" cannot be read as JSON/],
    [["--check", "a.json", "--diff", "a.json"], /^keelson: --diff and --check are given/],
    [["--entry", "lambda.mjs"], /^keelson: --entry is given without --check/],
  ])("exits with 2 and names the help for %j", async (args, message) => {
    const { code, err } = await run("server.mjs", ...args);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
    expect(err).toContain("Run `keelson infra --help`.");
  });

  test("exits with 2 when the entry does not exist", async () => {
    expect(
      await run("server.mjs", "--check", at("functions.json"), "--entry", at("none.mjs")),
    ).toMatchObject({ code: 2 });
  });
});
