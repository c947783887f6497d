import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { command } from "./doctor-command.ts";

const { usage } = command;

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const made = `buildServer({ features: [defineFeature("mugs", (r) => void r.table("mugs", { partitionKey: "pk", tenant: false }))] })`;
const modules = {
  "server.mjs": `export const other = 1; export const server = ${made};`,
  "default.mjs": `export default ${made};`,
  "only.mjs": `export const nothing = undefined; export const application = ${made};`,
  "none.mjs": "export const server = { registry: {} };",
  "broken.mjs": `buildServer({ features: [], colour: "red" });`,
  "odd.mjs": `throw "odd";`,
};

let folder: string;
let app: TestApp;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-doctor-"));
  for (const [name, text] of Object.entries(modules)) {
    await writeFile(
      join(folder, name),
      `import { buildServer, defineFeature } from ${source};\n${text}\n`,
    );
  }
  app = await startTestApp(
    buildServer({
      features: [
        defineFeature("mugs", (r) => void r.table("mugs", { partitionKey: "pk", tenant: false })),
      ],
    }),
  );
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

const run = (args: readonly string[], env: Record<string, string> = {}) =>
  ranCommand(["doctor", ...args], { env: { ...app.env, ...env } });
const at = (name: string) => join(folder, name);

describe("keelson doctor", () => {
  test.each(["server.mjs", "default.mjs", "only.mjs"])(
    "prints a line for each check and a summary, and exits with 0: %s",
    async (name) => {
      const { code, out, err } = await run([at(name)]);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toContain("ok    table keelson-mugs: active, with the keys pk (S)");
      expect(out.slice(0, -1).filter((line) => !/^(ok {2}|skip) {2}\S/.test(line))).toEqual([]);
      expect(out.at(-1)).toBe(
        `${out.length - 1} checks: ${out.length - 5} ok, 0 warn, 0 fail, 4 not checked`,
      );
    },
  );

  test("prints each problem with the command that fixes it, and exits with 1", async () => {
    const { code, out } = await run([at("server.mjs")], { KEELSON_TABLE_MUGS: "no-mugs" });
    const line = out.indexOf("fail  table no-mugs: it does not exist");
    expect([code, line > 0]).toEqual([1, true]);
    expect(out[line + 1]).toMatch(/^ {6}\$ aws dynamodb create-table --table-name no-mugs /);
    expect(out.at(-1)).toMatch(/, 1 fail, /);
  });

  test("shows failures in red, and nothing else", async () => {
    const styled: string[] = [];
    await ranCommand(["doctor", at("server.mjs")], {
      env: { ...app.env, KEELSON_TABLE_MUGS: "no-mugs" },
      print: (line, style) => void (style && styled.push(`${style}: ${line}`)),
    });
    expect(styled).toEqual(["red: fail  table no-mugs: it does not exist"]);
  });

  test("removes control characters from names", async () => {
    const { code, out } = await run([at("server.mjs")], {
      KEELSON_TABLE_MUGS: "no-\u001b[31mmugs\nok",
    });
    expect([code, out.find((line) => line.includes("mugs"))]).toEqual([
      1,
      expect.stringMatching(/^fail {2}table no- \[31mmugs ok: /),
    ]);
    expect(out.join("")).not.toMatch(/\p{C}/u);
  });

  test("prints one JSON document with --json", async () => {
    const { code, out } = await run([at("server.mjs"), "--json", "--timeout-seconds", "9"], {
      KEELSON_TABLE_MUGS: "no-mugs",
    });
    expect([code, out.length]).toEqual([1, 1]);
    const { summary, checks } = JSON.parse(out[0] ?? "");
    expect(summary).toEqual({ ok: checks.length - 5, warn: 0, fail: 1, skip: 4 });
    expect(checks).toContainEqual({
      name: "table no-mugs",
      status: "fail",
      message: "it does not exist",
      fix: [expect.stringContaining("aws dynamodb create-table")],
    });
  });

  test.each<[string[], RegExp]>([
    [[], /no module is given/],
    [["a.ts", "b.ts"], /unexpected argument "b.ts"/],
    [["nowhere.ts"], /there is no module "nowhere.ts"/],
    [["a.ts", "--fast"], /--fast/],
    [
      ["a.ts", "--timeout-seconds", "0"],
      /--timeout-seconds "0" is not a whole number from 1 to 999/,
    ],
  ])("exits with 2 and a hint for %j", async (args, message) => {
    const { code, out, err } = await run(args);
    expect({ code, out }).toEqual({ code: 2, out: [] });
    expect(err).toMatch(message);
    expect(err).toContain("Run `keelson doctor --help`.");
  });

  test("exits with 2 when the module exports no server, and with 1 when it cannot be loaded", async () => {
    const none = await run([at("none.mjs")]);
    expect([none.code, none.err]).toEqual([
      2,
      expect.stringContaining("exports no server; export the result of buildServer"),
    ]);
    const broken = await run([at("broken.mjs")]);
    expect([broken.code, broken.out]).toEqual([1, []]);
    expect(broken.err).toMatch(
      /broken\.mjs cannot be loaded: 1 problem at boot\n {2}colour: unknown option "colour"/,
    );
    const odd = await run([at("odd.mjs")]);
    expect([odd.code, odd.err]).toEqual([
      1,
      expect.stringMatching(/odd\.mjs cannot be loaded: odd$/),
    ]);
  });

  test.each(["nowhere", "localhost:4566"])(
    "exits with 1 when an endpoint is not a URL: %s",
    async (AWS_ENDPOINT_URL) => {
      const { code, out, err } = await run([at("server.mjs")], { AWS_ENDPOINT_URL });
      expect({ code, out }).toEqual({ code: 1, out: [] });
      expect(err).toMatch(
        /^keelson: the endpoint of dynamodb is not a URL; set AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_DYNAMODB to http/,
      );
    },
  );

  test("prints its usage with --help", async () => {
    expect(await run(["--help"])).toEqual({ code: 0, out: [usage], err: "" });
  });

  test("runs as a program and exits", async () => {
    const program = join(import.meta.dirname, "../main.ts");
    const { code, stdout } = await new Promise<{ code: unknown; stdout: string }>((resolve) => {
      execFile(
        process.execPath,
        [program, "doctor", at("server.mjs")],
        { env: { ...process.env, ...app.env } },
        (error, stdout) => resolve({ code: error === null ? 0 : error.code, stdout }),
      );
    });
    expect([code, stdout.trim().split("\n").at(-1)]).toEqual([
      0,
      expect.stringMatching(/, 0 fail, 4 not checked$/),
    ]);
  });
});
