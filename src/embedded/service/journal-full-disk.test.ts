// own process: it replaces modules
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openJournal } from "./journal.ts";

vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<typeof import("node:fs")>();
  return { ...fs, appendFileSync: vi.fn(fs.appendFileSync) };
});

test("a flush that a full disk cuts off leaves no half line, and the next flush writes its changes", async () => {
  const fs = await vi.importActual<typeof import("node:fs")>("node:fs");
  const directory = mkdtempSync(join(tmpdir(), "keelson-journal-"));
  const path = join(directory, "journal.jsonl");
  const journal = openJournal<number>(path);
  journal.put("a", 1);
  journal.flush();
  vi.mocked(appendFileSync).mockImplementationOnce((file, text) => {
    fs.appendFileSync(file, String(text).slice(0, -3));
    throw new Error("ENOSPC: no space left on device, write");
  });

  journal.put("b", 2);
  expect(() => journal.flush()).toThrow("ENOSPC");
  expect(readFileSync(path, "utf8")).toBe('[["a",1]]\n');
  journal.put("c", 3);
  journal.flush();

  expect(readFileSync(path, "utf8")).toBe('[["a",1]]\n[["b",2],["c",3]]\n');
  expect(openJournal(path).opened).toEqual([1, 2, 3]);
  rmSync(directory, { recursive: true });
});
