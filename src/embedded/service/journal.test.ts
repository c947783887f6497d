import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openJournal } from "./journal.ts";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-journal-"));
  path = join(directory, "journal.jsonl");
});
afterEach(() => rmSync(directory, { recursive: true }));

const lines = () => readFileSync(path, "utf8").split("\n").length - 1;

test("restores what was flushed, in the original order", () => {
  const first = openJournal<object>(path);
  first.put("b", { n: 1 });
  first.put("a", { text: "line\nbreak" });
  first.put("gone", {});
  first.flush();
  first.put("b", { n: 2 });
  first.delete("gone");
  first.delete("never there");
  first.flush();
  // not closed: a process that is killed closes nothing
  expect(openJournal(path).opened).toEqual([{ n: 2 }, { text: "line\nbreak" }]);
});

test("loses what was not flushed", () => {
  openJournal<number>(path).put("a", 1);
  expect(openJournal(path).opened).toEqual([]);
});

test("restores all changes of a flush or none of them", () => {
  const journal = openJournal<number>(path);
  journal.put("a", 1);
  journal.flush();
  journal.delete("a");
  journal.put("b", 1);
  journal.flush();
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.slice(0, -2));
  expect(openJournal(path).opened).toEqual([1]);
  expect(readFileSync(path, "utf8")).toBe('[["a",1]]\n');
});

test("names a line that it did not write, and leaves the file alone", () => {
  openJournal<number>(path).close();
  for (const line of ["{", "7", "[7]", "[[7]]"]) {
    writeFileSync(path, '[["a",1]]\n');
    appendFileSync(path, `${line}\n`);
    expect(() => openJournal(path)).toThrow(`${path}:2 was not written by the embedded stack`);
    expect(lines()).toBe(2);
  }
  rmSync(path);
  mkdirSync(path);
  expect(() => openJournal(path)).toThrow("EISDIR");
});

test("keeps the file close to the size of its live entries", () => {
  const journal = openJournal<string>(path, 1000);
  for (let n = 0; n < 500; n += 1) {
    journal.put("same", "x".repeat(100));
    journal.flush();
    expect(statSync(path).size).toBeLessThan(1200);
  }
  journal.put("last", "y");
  journal.flush();
  expect(openJournal(path).opened).toEqual(["x".repeat(100), "y"]);
});

test("keeps all live entries in a file larger than its limit", () => {
  const journal = openJournal<string>(path, 100);
  for (let n = 0; n < 100; n += 1) {
    journal.put(`key-${n}`, "x".repeat(100));
    journal.flush();
  }
  expect(openJournal(path).opened).toHaveLength(100);
});

test("goes on after a compaction that failed", () => {
  const journal = openJournal<number>(path, 1);
  mkdirSync(`${path}.draft`);
  journal.put("a", 1);
  expect(() => journal.flush()).toThrow("EISDIR");
  rmSync(`${path}.draft`, { recursive: true });
  journal.put("b", 2);
  journal.flush();
  journal.close();
  expect(openJournal(path).opened).toEqual([1, 2]);
});

test("only the owner can read the file", () => {
  openJournal(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("refuses to flush entries once closed", () => {
  const journal = openJournal<number>(path);
  journal.close();
  journal.close();
  journal.flush();
  journal.put("a", 1);
  expect(() => journal.flush()).toThrow(`${path} is closed`);
});

test("keeps nothing without a path", () => {
  const journal = openJournal<number>();
  journal.put("a", 1);
  journal.delete("a");
  journal.flush();
  journal.close();
  expect(journal.opened).toEqual([]);
});
