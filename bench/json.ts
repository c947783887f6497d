import { parseBody } from "../src/parts/http/input.ts";
import { type Result, result } from "./measure.ts";

const megabyte = 1_048_576;
const attempts = 15;

/** Reading a body of a megabyte, beside what JSON.parse alone takes of its bytes: of the bodies that hold it up most, the worst. */
export function jsonResults(): Result[] {
  const measured = Object.entries(bodies()).map(([name, text]) => ({
    name,
    ...timesOf(Buffer.from(text)),
  }));
  for (const { name, ours, peer } of measured) {
    console.log(`${name.padEnd(30)} ${ours.toFixed(2)} ms, JSON.parse ${peer.toFixed(2)} ms`);
  }
  const { ours, peer } = measured.reduce((one, other) =>
    other.ours / other.peer > one.ours / one.peer ? other : one,
  );
  const nanoseconds = (ms: number) => Math.round(ms * 1_000_000);
  return [
    result({
      id: "json-hostile",
      ours: nanoseconds(ours),
      peer: nanoseconds(peer),
      unit: "ns",
    }),
  ];
}

/** The quickest of many, in turns: what is slower was held up by something else. */
function timesOf(bytes: Buffer): { ours: number; peer: number } {
  let [ours, peer] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    ours = Math.min(
      ours,
      millisecondsOf(() => parseBody("json", "application/json", bytes, true)),
    );
    peer = Math.min(
      peer,
      millisecondsOf(() => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))),
    );
  }
  return { ours, peer };
}

function millisecondsOf(work: () => unknown): number {
  const began = performance.now();
  try {
    work();
  } catch {
    // Some are refused: that is what is measured of them.
  }
  return performance.now() - began;
}

function bodies(): Readonly<Record<string, string>> {
  const list = (element: string) => filled("[", "]", () => element);
  const object = (member: (index: number) => string) => filled("{", "}", member);
  const text = (piece: string) =>
    `{"a":"${piece.repeat(Math.floor((megabyte - 8) / Buffer.byteLength(piece)))}"}`;
  return {
    "a long text": text("x"),
    "a text of many bytes": text("é"),
    "a text of escapes": text('\\"'),
    "a text with escapes in it": text(`${"x".repeat(50)}\\n`),
    "a text with escapes far apart": text(`${"x".repeat(300)}\\n`),
    "texts of an escape": list('"\\""'),
    "texts with an escape in front": list(`"\\n${"x".repeat(24)}"`),
    "long numbers": list("1".repeat(60)),
    "a text of commas": text("a,"),
    "spaces before an object": `${" ".repeat(megabyte - 2)}{}`,
    "a long number": `[${"1".repeat(megabyte - 2)}]`,
    records: list('{"id":12345,"name":"some name here","price":12.5,"tags":["a","b"]}'),
    "small objects": list('{"a":0}'),
    "empty objects": list("{}"),
    "empty lists": list("[]"),
    numbers: list("0"),
    texts: list('"0123456789abcdef"'),
    "long texts": list(`"${"x".repeat(100)}"`),
    "objects of their own kind": filled("[", "]", (index) => `{"${index.toString(36)}":0}`),
    members: object((index) => `"${index.toString(36)}":0`),
    "members called numbers": object((index) => `"${index * 7_919}":0`),
    "members called __proto__": list('{"__proto__":0}'),
    "lists in lists": "[".repeat(megabyte / 2) + "]".repeat(megabyte / 2),
    "objects in objects": `${'{"a":'.repeat(megabyte / 6)}0${"}".repeat(megabyte / 6)}`,
  };
}

/** As many of them as fit a megabyte. */
function filled(open: string, close: string, element: (index: number) => string): string {
  const elements: string[] = [];
  for (let [index, length] = [0, 2]; ; index += 1) {
    const one = element(index);
    length += one.length + 1;
    if (length > megabyte) return open + elements.join() + close;
    elements.push(one);
  }
}
