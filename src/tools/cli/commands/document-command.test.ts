import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { openApi } from "./document-command.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const moduleOf = (declarations: string) =>
  `import { access, buildServer, defineFeature } from ${source};
export const server = buildServer({ features: [defineFeature("mugs", (r) => { ${declarations} })], openapi: { title: "Mugs" } });`;
const own = `{ "~standard": { version: 1, vendor: "own", validate: (value) => ({ value }) } }`;
const route = `route: "GET /mugs", access: access.everyone, handler: () => 1`;
const files = {
  "closed.mjs": moduleOf(`r.query("mug.count", { ${route} });`).replace(
    '{ title: "Mugs" }',
    "false",
  ),
  "server.mjs": moduleOf(`r.query("mug.count", { ${route} });`),
  "unsaid.mjs": moduleOf(`r.query("mug.count", { ${route}, input: ${own}, output: ${own} });`),
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-openapi-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});
afterAll(() => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
const run = (...args: readonly string[]) => ranCommand(["openapi", ...args]);

describe("keelson openapi", () => {
  test("prints the document of a server", async () => {
    const { code, out, err } = await run(at("server.mjs"));
    expect([code, err]).toEqual([0, ""]);
    expect(JSON.parse(out.join("\n"))).toMatchObject({
      openapi: "3.1.1",
      info: { title: "Mugs" },
      paths: { "/mugs": {} },
    });
  });

  test.each([
    ["3.1", "3.1.1"],
    ["3.2", "3.2.0"],
  ])("prints the document of version %s, if asked", async (spec, openapi) => {
    const { code, out } = await run(at("server.mjs"), "--spec", spec);
    expect([code, JSON.parse(out.join("\n")).openapi]).toEqual([0, openapi]);
  });

  test("refuses another version, and names those it knows", async () => {
    const { code, err } = await run(at("server.mjs"), "--spec", "3.0");
    expect(code).toBe(2);
    expect(err).toContain('--spec "3.0": use 3.1 or 3.2');
    const { out } = await run("--help");
    expect(out.join("\n")).toMatch(/--spec <version> +3\.1 or 3\.2 \(default: 3\.1\)/);
  });

  test("prints a default document for a server that serves none", async () => {
    const { code, out } = await run(at("closed.mjs"));
    expect([code, JSON.parse(out.join("\n")).info]).toEqual([
      0,
      { title: "API", version: "0.0.0" },
    ]);
  });

  test("writes the document to a file, with the same bytes each time", async () => {
    const file = at("made/openapi.json");
    const { code, out } = await run(at("server.mjs"), "--out", file);
    const text = await readFile(file, "utf8");
    expect([code, out]).toEqual([0, [`${file}: ${Buffer.byteLength(text)} bytes`]]);
    await run(at("server.mjs"), "--out", file);
    expect(await readFile(file, "utf8")).toBe(text);
    expect(text.endsWith("}\n")).toBe(true);
  });

  test("names each schema without a JSON Schema and exits with 1, but still writes the document", async () => {
    const file = at("unsaid.json");
    const why = 'own has no Standard JSON Schema; give it ["~standard"].jsonSchema';
    expect(await run(at("unsaid.mjs"), "--out", file)).toMatchObject({
      code: 1,
      err: `keelson: mugs.mug.count input (own): ${why}\nkeelson: mugs.mug.count output (own): ${why}`,
    });
    expect(await readFile(file, "utf8")).toContain('"x-keelson-unsaid"');
  });

  test("prints its usage, and exits with 2 on wrong usage", async () => {
    expect(await run("--help")).toEqual({ code: 0, out: [openApi.usage], err: "" });
    expect(await run()).toMatchObject({
      code: 2,
      err: expect.stringContaining("no module is given"),
    });
    expect(await run(at("none.mjs"))).toMatchObject({
      code: 2,
      err: expect.stringContaining("there is no module"),
    });
    expect(await run(at("server.mjs"), "--oout", "x")).toMatchObject({ code: 2 });
  });
});
