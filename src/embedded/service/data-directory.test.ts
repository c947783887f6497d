// own process: it replaces modules
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDataDirectory, isAlive, openExclusively, shared } from "./data-directory.ts";

vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<typeof import("node:fs")>();
  return { ...fs, writeFileSync: vi.fn(fs.writeFileSync), lstatSync: vi.fn(fs.lstatSync) };
});

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-directory-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const here = { pid: process.pid, parentPid: process.ppid };
const locked = () =>
  Promise.reject(
    new Error("Database failed to open", {
      cause: Object.assign(new Error("IO error: lock"), { code: "LEVEL_LOCKED" }),
    }),
  );
const holderFile = (content: unknown) =>
  writeFileSync(join(directory, "holder.json"), JSON.stringify(content));

async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  return child.pid ?? Number.NaN;
}

const modeOf = () => statSync(directory).mode & 0o777;

test.runIf(process.platform !== "win32").each([
  ["is empty", []],
  ["keeps the development's secret", ["development-secret"]],
  ["was somebody's before", ["holder.json", "db"]],
])("makes private a directory that is open to others and %s", (_, names) => {
  for (const name of names) writeFileSync(join(directory, name), "{}");
  chmodSync(directory, 0o755);
  createDataDirectory(directory);
  expect(modeOf()).toBe(0o700);
});

test.runIf(process.platform !== "win32")(
  "refuses a directory that is open to others and holds other files, and leaves it as it is",
  () => {
    writeFileSync(join(directory, "thesis.txt"), "");
    chmodSync(directory, 0o770);
    expect(() => createDataDirectory(directory)).toThrow(
      `The data directory ${directory} can be read by others (mode 770) and holds other files: it keeps secrets; name another by KEELSON_DIRECTORY`,
    );
    expect(modeOf()).toBe(0o770);
  },
);

test.runIf(process.platform !== "win32")(
  "refuses, at every start, a directory open to all that holds another user's files",
  () => {
    writeFileSync(
      join(directory, "development-secret"),
      "known to somebody else, who has put it here",
    );
    chmodSync(directory, 0o777);
    const { uid } = statSync(directory);
    for (const _start of [1, 2]) {
      vi.mocked(lstatSync).mockReturnValueOnce({ uid: uid + 1 } as ReturnType<typeof lstatSync>); // safe: the owner is all that is read
      expect(() => createDataDirectory(directory)).toThrow(
        `The data directory ${directory} holds "development-secret" of another user: it keeps secrets`,
      );
    }
    createDataDirectory(directory);
  },
);

test("ignores a file that another process removes in the meantime", async () => {
  const fs = await vi.importActual<typeof import("node:fs")>("node:fs");
  const draft = join(directory, "holder.json.1");
  writeFileSync(draft, "");
  vi.mocked(lstatSync).mockImplementationOnce((...given) => {
    rmSync(draft);
    return fs.lstatSync(draft, given[1]);
  });

  createDataDirectory(directory);

  expect(existsSync(draft)).toBe(false);
});

test("refuses a directory of another user, and skips the check on a system without user IDs", () => {
  const { getuid } = process;
  try {
    process.getuid = () => statSync(directory).uid + 1;
    expect(() => createDataDirectory(directory)).toThrow(
      `The data directory ${directory} belongs to another user`,
    );
    Object.assign(process, { getuid: undefined });
    createDataDirectory(directory);
  } finally {
    Object.assign(process, { getuid });
  }
});

test("writes the process that opens a directory to its holder file", async () => {
  expect(await openExclusively(directory, here, "us-east-1", async () => "opened")).toBe("opened");
  expect(JSON.parse(readFileSync(join(directory, "holder.json"), "utf8"))).toEqual(here);
});

test("refuses at once a directory that a live process holds, naming its process and its store's", async () => {
  holderFile({ pid: process.pid, parentPid: process.ppid });
  await expect(openExclusively(directory, here, "us-east-1", locked)).rejects.toThrow(
    `The data directory ${directory} is in use by process ${process.ppid} (its store is process ${process.pid}): stop that one first`,
  );
});

test("waits for a holder whose parent is gone", async () => {
  holderFile({ pid: process.pid, parentPid: await deadPid() });
  let attempts = 0;
  const opened = await openExclusively(directory, here, "us-east-1", () =>
    ++attempts < 3 ? locked() : Promise.resolve(attempts),
  );
  expect(opened).toBe(3);
});

const sharing = { port: 1, key: "key", region: "us-east-1" };

test("accepts a holder that shares a stack of the same region", async () => {
  holderFile({ pid: process.pid, parentPid: await deadPid(), shared: sharing });
  expect(await openExclusively(directory, here, "us-east-1", locked)).toBe(shared);
});

test("refuses at once a holder that shares a stack of another region, naming region and process", async () => {
  holderFile({ pid: process.pid, parentPid: await deadPid(), shared: sharing });
  await expect(openExclusively(directory, here, "eu-west-1", locked)).rejects.toThrow(
    `The data directory ${directory} is in use by the embedded stack of us-east-1 (process ${process.pid}): stop that one first, or use another directory for this one, or AWS_REGION=us-east-1`,
  );
});

test("accepts a holder that shares a stack of any region when no region is requested", async () => {
  holderFile({
    pid: process.pid,
    parentPid: await deadPid(),
    shared: { ...sharing, region: "eu-west-1" },
  });
  expect(await openExclusively(directory, here, undefined, locked)).toBe(shared);
});

test("waits for a holder that is starting, is ending or has ended", async () => {
  for (const holder of [
    { pid: process.pid, parentPid: 1, isStarting: true },
    { pid: process.pid, parentPid: process.ppid, isEnding: true },
    { pid: await deadPid(), parentPid: process.ppid, shared: sharing },
  ]) {
    holderFile(holder);
    let attempts = 0;
    const open = () => (++attempts < 3 ? locked() : Promise.resolve(attempts));
    expect(await openExclusively(directory, here, "us-east-1", open)).toBe(3);
  }
});

test.each([undefined, {}, { pid: 1 }, { pid: "1", parentPid: 1 }])(
  "reports a holder file of %j as another process",
  async (content) => {
    if (content !== undefined) holderFile(content);
    await expect(openExclusively(directory, here, "us-east-1", locked, 10)).rejects.toThrow(
      "is in use by another process: stop that one first",
    );
  },
);

test("passes on an error that is not about the lock", async () => {
  const fault = new Error("disk full");
  await expect(
    openExclusively(directory, here, "us-east-1", () => Promise.reject(fault)),
  ).rejects.toBe(fault);
});

test("creates a directory with a .gitignore, and accepts one that exists", () => {
  const nested = join(directory, "a", "b");
  createDataDirectory(nested);
  createDataDirectory(nested);
  expect(readFileSync(join(nested, ".gitignore"), "utf8")).toBe("*\n");
});

test("fails when a directory cannot be created or written to", () => {
  writeFileSync(join(directory, "file"), "");
  expect(() => createDataDirectory(join(directory, "file"))).toThrow("EEXIST");
  vi.mocked(writeFileSync).mockImplementationOnce(() => {
    throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
  });
  expect(() => createDataDirectory(directory)).toThrow("ENOSPC");
});

test("a process is alive until it has ended", async () => {
  expect(isAlive(process.pid)).toBe(true);
  expect(isAlive(await deadPid())).toBe(false);
});
