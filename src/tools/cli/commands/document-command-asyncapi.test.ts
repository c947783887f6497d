import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { asyncApi } from "./document-command.ts";

const [source, zod] = [
  new URL("../../../index.ts", import.meta.url).href,
  import.meta.resolve("zod"),
].map((url) => JSON.stringify(url));
const moduleOf = (declarations: string) => `import { buildServer, defineFeature } from ${source};
import * as z from ${zod};
export const server = buildServer({ features: [defineFeature("mugs", (r) => { ${declarations} })] });`;
const files = {
  "server.mjs": moduleOf(`r.event("mug.made", z.object({ id: z.string() }));`),
  "unsaid.mjs": moduleOf(
    `r.job("mug.wash", { input: z.object({ at: z.custom(() => true) }), handler: async () => {} });`,
  ),
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-asyncapi-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});
afterAll(() => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
async function run(...args: readonly string[]) {
  const { out, ...ended } = await ranCommand(["asyncapi", ...args]);
  return { ...ended, out: out.join("\n") };
}

describe("keelson asyncapi", () => {
  test("prints the document, or writes the same bytes to a file", async () => {
    const { code, out, err } = await run(at("server.mjs"));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({ asyncapi: "3.0.0", channels: { events: {} } });
    const file = at("made/asyncapi.json");
    expect(await run(at("server.mjs"), "--out", file)).toEqual({
      code: 0,
      out: `${file}: ${out.length + 1} bytes`,
      err: "",
    });
    expect(await readFile(file, "utf8")).toBe(`${out}\n`);
  });

  test("exits with 1 and names the schema that cannot be described", async () => {
    const { code, err } = await run(at("unsaid.mjs"));
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/^keelson: job mugs\.mug\.wash: at \(zod\): /),
    });
  });

  test("exits with 2 on wrong usage, and prints its help", async () => {
    expect(await run()).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/^keelson: no module is given/),
    });
    expect(await run("--help")).toEqual({ code: 0, out: asyncApi.usage, err: "" });
  });
});
