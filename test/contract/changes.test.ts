import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildServer, type Feature, type Server } from "keelson";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../support/ran-command.ts";
import { changeCases } from "./changes.ts";

/** The servers that modules of the tests export: what is declared here is typed, and the commands take modules. */
const served = Symbol.for("keelson.test.contract");
const servers = new Map<string, Server>();

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-contract-"));
  Object.defineProperty(globalThis, served, { value: servers, configurable: true });
});
afterAll(async () => {
  Reflect.deleteProperty(globalThis, served);
  await rm(folder, { recursive: true });
});

let modules = 0;
async function moduleOf(feature: Feature): Promise<string> {
  const name = `module-${modules++}.mjs`;
  servers.set(name, buildServer({ features: [feature], environment: "test" }));
  await writeFile(
    join(folder, name),
    `export const server = globalThis[Symbol.for("keelson.test.contract")].get(${JSON.stringify(name)});`,
  );
  return join(folder, name);
}

async function run(...args: readonly string[]) {
  const { out, ...ended } = await ranCommand(["contract", ...args], { clock: { now: () => 0 } });
  return { ...ended, out: out.join("\n") };
}

describe("each of the forty changes gets its verdict", () => {
  test.each(changeCases)("$name ($oasdiff)", async ({ before, after, expected }) => {
    const file = join(folder, `contract-${modules}.json`);
    expect(await run("write", await moduleOf(before), "--file", file)).toMatchObject({
      code: 0,
      err: "",
    });
    const { code, out, err } = await run("check", await moduleOf(after), "--file", file, "--json");
    expect(err).toBe("");
    const { changes, stored } = JSON.parse(out) as {
      changes: { breaks?: string; where: string; rule: string }[];
      stored: unknown;
    }; // safe: as it is printed
    expect(changes.map(({ breaks = "-", where, rule }) => `${breaks} ${where} ${rule}`)).toEqual(
      expected,
    );
    expect(stored).toEqual([]);
    expect(code).toBe(expected.some((line) => !line.startsWith("-")) ? 1 : 0);
  });

  test("there are at least forty changes, half of them distinct oasdiff rules", () => {
    const rules = changeCases.flatMap(({ oasdiff }) => oasdiff ?? []);
    expect(changeCases.length).toBeGreaterThanOrEqual(40);
    expect(rules.length).toBeGreaterThanOrEqual(changeCases.length / 2);
    expect(new Set(rules).size).toBe(rules.length);
  });

  test.each(changeCases)("an unchanged contract breaks nothing: $name", async ({ after }) => {
    const file = join(folder, `contract-${modules}.json`);
    const module = await moduleOf(after);
    await run("write", module, "--file", file);
    expect(await run("check", module, "--file", file)).toEqual({
      code: 0,
      out: "Nothing has changed.",
      err: "",
    });
  });
});
