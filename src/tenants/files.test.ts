import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openExportFile } from "./export-file.ts";
import { stateFile, type WalkIdentity } from "./state-file.ts";
import type { WalkState } from "./walk.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-tenants-"));
});
afterEach(() => rm(folder, { recursive: true }));
const at = (name: string) => join(folder, name);
const modeOf = async (name: string) => (await stat(at(name))).mode & 0o777;

describe("the file of an export", () => {
  test("has its name once it is whole, and only its owner reads it", async () => {
    await writeFile(at("out.part"), "left by another");
    const file = await openExportFile(at("out"));
    await file.write("one\n");
    await file.write("ö\n");
    expect([await readdir(folder), file.bytes]).toEqual([["out.part"], 7]);
    await file.finish();
    expect([await readdir(folder), await readFile(at("out"), "utf8")]).toEqual([["out"], "one\nö\n"]);
  });

  test("is for its owner from the beginning", async () => {
    const file = await openExportFile(at("out"));
    expect(await modeOf("out.part")).toBe(0o600);
    await file.close();
  });

  test("goes on where a state says, without what was written behind it", async () => {
    await writeFile(at("out.part"), "one\ntwo\nthree\nfour\nfi");
    const file = await openExportFile(at("out"), 8);
    await file.write("three\n");
    await file.finish();
    expect(await readFile(at("out"), "utf8")).toBe("one\ntwo\nthree\n");
  });

  test("does not go on where less is there than was written", async () => {
    await writeFile(at("out.part"), "one\n");
    await expect(openExportFile(at("out"), 8)).rejects.toThrow(`${at("out.part")} has less than the 8 bytes that were written`);
    await expect(openExportFile(at("other"), 8)).rejects.toThrow("ENOENT");
  });
});

describe("the file of a state", () => {
  const identity: WalkIdentity = { action: "erase", tenant: "acme", tables: ["app-notes", "app-config"] };
  const state: WalkState = { pass: 2, at: 1, from: { pk: { S: "a" } }, found: 3, counts: [{ scanned: 9, rows: 3, untold: 1 }] };

  test("gives what was kept last, to the same walk alone, and is gone in the end", async () => {
    const file = stateFile(at("state"), identity);
    expect(await file.read()).toBeUndefined();
    await file.write({ state: { ...state, pass: 1 } });
    await file.write({ state, bytes: 12 });
    expect(await file.read()).toMatchObject({ state, bytes: 12 });
    expect([await readdir(folder), await modeOf("state")]).toEqual([["state"], 0o600]);
    for (const other of [{ action: "export" }, { tenant: "acme2" }, { tables: ["app-config"] }] as const) {
      const walk = stateFile(at("state"), { ...identity, ...other });
      await expect(walk.read()).rejects.toThrow(
        `${at("state")} is not of this ${"action" in other ? "export" : "erase"}; remove it`,
      );
    }
    await file.remove();
    await file.remove();
    expect(await readdir(folder)).toEqual([]);
  });

  test.each(["", "{", "null", "[]", "7", `{"identity":null}`])("that is no state is refused: %s", async (text) => {
    await writeFile(at("state"), text);
    await expect(stateFile(at("state"), identity).read()).rejects.toThrow("is not of this erase");
  });

  test("that cannot be read says why", async () => {
    await expect(stateFile(folder, identity).read()).rejects.toThrow("EISDIR");
  });
});
