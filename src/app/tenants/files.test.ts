import {
  chmod,
  link,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openExportFile, stateFile, type WalkIdentity } from "./files.ts";
import type { WalkState } from "./walk.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-tenants-"));
});
afterEach(() => rm(folder, { recursive: true }));
const at = (name: string) => join(folder, name);
const modeOf = async (name: string) => (await stat(at(name))).mode & 0o777;

describe("an export file", () => {
  test("gets its name once it is complete, and only its owner can read it", async () => {
    await writeFile(at("out.part"), "left by another");
    const file = await openExportFile(at("out"));
    await file.write("one\n");
    await file.write("ö\n");
    expect([await readdir(folder), file.bytes]).toEqual([["out.part"], 7]);
    await file.finish();
    expect([await readdir(folder), await readFile(at("out"), "utf8")]).toEqual([
      ["out"],
      "one\nö\n",
    ]);
  });

  test("belongs to its owner from the beginning, whatever exists under its name", async () => {
    const file = await openExportFile(at("out"));
    expect(await modeOf("out.part")).toBe(0o600);
    await file.close();
    await chmod(at("out.part"), 0o666);
    const left = await open(at("out.part"));
    const again = await openExportFile(at("out"));
    await again.write("one\n");
    expect([await modeOf("out.part"), await left.readFile("utf8")]).toEqual([0o600, ""]);
    await again.finish();
    expect(await modeOf("out")).toBe(0o600);
    await left.close();
  });

  test.each([
    ["a link", (from: string, to: string) => symlink(from, to)],
    ["a link to nothing", (_from: string, to: string) => symlink(at("nothing"), to)],
    ["another name of a file", (from: string, to: string) => link(from, to)],
  ])("is not written through an existing link with its name: %s", async (_case, prepare) => {
    await writeFile(at("precious"), "precious", { mode: 0o644 });
    for (const prepared of [at("out.part"), at("out")]) await prepare(at("precious"), prepared);
    const file = await openExportFile(at("out"));
    await file.write("one\n");
    await file.finish();
    expect([await readFile(at("precious"), "utf8"), await readFile(at("out"), "utf8")]).toEqual([
      "precious",
      "one\n",
    ]);
    expect([await readdir(folder), await modeOf("out")]).toEqual([["out", "precious"], 0o600]);
  });

  test("does not get its name when another export has started since", async () => {
    const first = await openExportFile(at("out"));
    await first.write("first\n");
    const second = await openExportFile(at("out"));
    await second.write("half of the sec");
    await expect(first.finish()).rejects.toThrow(`${at("out.part")} is another file by now`);
    expect(await readdir(folder)).toEqual(["out.part"]);
    await second.finish();
    expect(await readFile(at("out"), "utf8")).toBe("half of the sec");
  });

  test.each<[string, string, () => Promise<unknown>]>([
    [
      "a link",
      "is a link",
      () => rename(at("out.part"), at("real")).then(() => symlink(at("real"), at("out.part"))),
    ],
    ["a file with another name", "only one name", () => link(at("out.part"), at("other"))],
    [
      "a file that others may read",
      "is accessible to other users",
      () => chmod(at("out.part"), 0o644),
    ],
    [
      "a file that others may write",
      "is accessible to other users",
      () => chmod(at("out.part"), 0o620),
    ],
  ])("does not resume from %s", async (_case, says, change) => {
    const file = await openExportFile(at("out"));
    await file.write("one\ntwo\n");
    await file.close();
    await change();
    await expect(openExportFile(at("out"), 4)).rejects.toThrow(says);
    expect(await readFile(at("out.part"), "utf8")).toBe("one\ntwo\n");
  });

  test("resumes at the position in the state, and drops anything written after it", async () => {
    await writeFile(at("out.part"), "one\ntwo\nthree\nfour\nfi", { mode: 0o600 });
    const file = await openExportFile(at("out"), 8);
    await file.write("three\n");
    await file.finish();
    expect(await readFile(at("out"), "utf8")).toBe("one\ntwo\nthree\n");
  });

  test("does not resume when the file is shorter than was written", async () => {
    await writeFile(at("out.part"), "one\n", { mode: 0o600 });
    await expect(openExportFile(at("out"), 8)).rejects.toThrow(
      `${at("out.part")} has less than the 8 bytes that were written`,
    );
    await expect(openExportFile(at("other"), 8)).rejects.toThrow("ENOENT");
  });
});

describe("a state file", () => {
  const identity: WalkIdentity = {
    action: "erase",
    tenant: "acme",
    tables: ["app-notes", "app-config"],
    region: "eu-west-1",
    endpoint: "undefined",
    isEmbedded: false,
  };
  const state: WalkState = {
    pass: 2,
    at: 1,
    from: { pk: { S: "a" } },
    found: 3,
    counts: [{ scanned: 9, rows: 3, untold: 1 }],
  };

  test("returns the last saved state to the same walk only, and is deleted at the end", async () => {
    const file = stateFile(at("state"), identity);
    expect(await file.read()).toBeUndefined();
    await file.write({ state: { ...state, pass: 1 } });
    await file.write({ state, bytes: 12 });
    expect(await file.read()).toMatchObject({ state, bytes: 12 });
    expect([await readdir(folder), await modeOf("state")]).toEqual([["state"], 0o600]);
    for (const other of [
      { action: "export" },
      { tenant: "acme2" },
      { tables: ["app-config"] },
      { region: "us-east-1" },
      { endpoint: "http://127.0.0.1:8000" },
      { isEmbedded: true },
    ] as const) {
      const walk = stateFile(at("state"), { ...identity, ...other });
      await expect(walk.read()).rejects.toThrow(
        `${at("state")} is not of this ${"action" in other ? "export" : "erase"}; remove it`,
      );
    }
    await file.remove();
    await file.remove();
    expect(await readdir(folder)).toEqual([]);
  });

  test.each(["", "{", "null", "[]", "7", `{"identity":null}`])(
    "is refused when invalid: %s",
    async (text) => {
      await writeFile(at("state"), text);
      await expect(stateFile(at("state"), identity).read()).rejects.toThrow("is not of this erase");
    },
  );

  test("belongs to its owner alone: a prepared one is neither resumed nor written through", async () => {
    const file = stateFile(at("state"), identity);
    await writeFile(at("precious"), "precious");
    await symlink(at("precious"), at("state.new"));
    await file.write({ state });
    expect([await readFile(at("precious"), "utf8"), await modeOf("state")]).toEqual([
      "precious",
      0o600,
    ]);
    await rename(at("state"), at("prepared"));
    await symlink(at("prepared"), at("state"));
    await expect(file.read()).rejects.toThrow(`${at("state")} is a link; remove it`);
    await rename(at("prepared"), at("state"));
    await chmod(at("state"), 0o666);
    await expect(file.read()).rejects.toThrow(
      `${at("state")} is accessible to other users; remove it`,
    );
  });

  test("says why it cannot be read", async () => {
    await expect(stateFile(folder, identity).read()).rejects.toThrow("EISDIR");
  });
});
