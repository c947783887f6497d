// The embedded stack's data directory, in its state when its process is killed.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Line, line, sent } from "./line.ts";
import { lines } from "./lines.ts";

/** A data directory that is kept. */
export interface KeptDirectory {
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** Data that lines have left in it. */
  readonly left: readonly { readonly name: string; readonly value: unknown }[];
  /** When its process was killed, in milliseconds since the epoch. */
  readonly leftMs: number;
  /** A token of `keelson token`, signed with the directory's secret, of the tenant `acme`. */
  readonly token: string;
}

/** The last two, in which the process is killed: their unfinished writes count as not written. */
export const cutLines: readonly Line[] = [
  line(
    "a job that was being sent is not there, and can be sent again",
    async ({ host, ann, name }) => void (await sent(host, `/jobs/${name}`, { as: ann, body: {} })),
    async ({ expect, host, store, ann, name }) => {
      await host.drain();
      expect(await store.effect(ann.tenantId, "worked", name)).toBe(0);
      await sent(host, `/jobs/${name}`, { as: ann, body: {} });
      await host.drain();
      expect(await store.effect(ann.tenantId, "worked", name)).toBe(1);
    },
  ),
  line(
    "a transaction that was being written is rolled back, and can be done again",
    async ({ host, ann, name }) => void (await sent(host, `/commits/${name}`, cutWrite(ann))),
    async ({ expect, host, store, ann, name }) => {
      expect(await store.effect(ann.tenantId, "commit", name)).toBe(0);
      const answer = await sent(host, `/commits/${name}`, cutWrite(ann));
      expect(answer.headers["idempotent-replayed"]).toBeUndefined();
      expect(await store.effect(ann.tenantId, "commit", name)).toBe(1);
    },
  ),
];

const cutWrite = (ann: Parameters<Line["leave"]>[0]["ann"]) => ({
  as: ann,
  body: {},
  headers: { "idempotency-key": "cut" },
});

const names = [
  "an answer that was committed is replayed",
  "an encrypted answer is replayed",
  "the value of theme is read",
  "a secret of before the key was retired is opened",
  "a history goes on at the page that a client has come to",
  "an event on its way is consumed once by each consumer, with what follows",
  "an event that was left in the outbox is dispatched and consumed once",
  "an event of which one consumer has failed is consumed by that one, and enqueues the same job",
  "a job on its way is done once",
  "a delivery on its way is sent once",
];

/** Lines that leave data in a directory, in this order. */
export const directoryLines: readonly Line[] = [
  ...lines.filter(({ name }) => names.includes(name)),
  ...cutLines,
];

/** Reads a directory whose process was killed, cut off in the middle of its last writes. */
export function readCut(directory: string): Readonly<Record<string, Uint8Array>> {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
  const log = paths
    .filter((path) => /^dynamodb\/\d+\.log$/.test(path))
    .sort()
    .at(-1);
  return Object.fromEntries(
    paths
      .filter((path) => path !== "dynamodb/LOCK" && !/^dynamodb\/LOG/.test(path))
      .map((path) => {
        const bytes = readFileSync(join(directory, path));
        return [path, path === log || path === "queues.jsonl" ? bytes.subarray(0, -20) : bytes];
      }),
  );
}

/** Writes a directory again, its queues as old as they would be had the process been killed a moment ago. */
export function writeKept({ files, leftMs }: KeptDirectory): string {
  const directory = mkdtempSync(join(tmpdir(), "keelson-kept-"));
  const byMs = Date.now() - leftMs;
  for (const [path, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(
      join(directory, path),
      path === "queues.jsonl" ? movedOn(Buffer.from(bytes).toString(), byMs) : bytes,
    );
  }
  return directory;
}

/** All times, which are numbers of milliseconds since the epoch: messages end after four days. */
function movedOn(text: string, byMs: number): string {
  return text.replace(/(?<=:)1[6-9]\d{11}(?=[,}])/g, (time) => String(Number(time) + byMs));
}
