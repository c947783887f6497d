import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** An input for which a parser has to keep its promise. Tried before random ones. */
export interface Kept {
  readonly parser: string;
  /** The defect that it showed, or the limit that it tests. */
  readonly because: string;
  readonly input: unknown;
}

const folder = join(import.meta.dirname, "corpus");

/** Reads `corpus/<parser>.json`. */
export function corpusOf(parser: string): readonly Kept[] {
  const file = join(folder, `${parser}.json`);
  if (!existsSync(file)) return [];
  return JSON.parse(readFileSync(file, "utf8"), (_name, value) => inputOf(value));
}

/** Returns an entry in the form of the corpus's files. */
export function entryText(entry: Kept): string {
  return JSON.stringify(entry, textOf, 2);
}

/** Members with these names mark values that JSON does not have. */
const [bytesName, numberName] = ["$base64", "$number"];

function textOf(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  const given = this[name]; // `value` is already the JSON form of a Buffer
  if (given instanceof Uint8Array) return { [bytesName]: Buffer.from(given).toString("base64") };
  const isLost = typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0));
  if (isLost) return { [numberName]: Object.is(value, -0) ? "-0" : String(value) };
  return value;
}

function inputOf(value: unknown): unknown {
  const marked = Object(value) as Readonly<Record<string, unknown>>; // safe: any value has members
  if (Object.keys(marked).length !== 1 || Array.isArray(value)) return value;
  if (typeof marked[bytesName] === "string")
    return new Uint8Array(Buffer.from(marked[bytesName], "base64"));
  return typeof marked[numberName] === "string" ? Number(marked[numberName]) : value;
}
