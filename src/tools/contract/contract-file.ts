import { sortedBy } from "../../app/openapi/canonical.ts";
import { isObject } from "../../app/openapi/schema.ts";
import { type Contract, contractFormat } from "./contract.ts";

/** Formats the contract with one fact per line, always in the same order. */
export function contractText(contract: Contract): string {
  return `${JSON.stringify(ordered(contract), undefined, 2)}\n`;
}

export function readContract(text: string): Contract {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new Error(
      `it is not JSON: ${(error as Error).message}; after a conflict of a merge, write it anew`,
    ); // safe cast: JSON.parse only throws errors
  }
  // Safe cast: `format` stays `unknown`.
  const { format } = Object(read) as { readonly format?: unknown };
  if (typeof format === "number" && format > contractFormat) {
    throw new Error(
      `its format is ${format}, and this keelson reads ${contractFormat}; use the keelson that wrote it, or a later one`,
    );
  }
  if (format !== contractFormat)
    throw new Error("it has no format; keelson contract write makes one");
  const wrong = lists.find(([name, ...ids]) => !hasList(read, name, ids));
  if (wrong !== undefined)
    throw new Error(`its ${wrong[0]} are not a list of what keelson writes; write it anew`);
  // Safe cast: the format is known, and each entry has its identifying members.
  return read as Contract;
}

/** Name of each list, followed by the members that identify its entries. */
const lists = [
  ["routes", "method", "path"],
  ["events", "type"],
  ["jobs", "name"],
  ["channels", "name"],
  ["consumers", "name", "event"],
  ["schedules", "name"],
  ["keys", "id"],
] as const;

function hasList(read: unknown, name: string, ids: readonly string[]) {
  const list = Object(read)[name];
  return (
    Array.isArray(list) &&
    list.every((entry) => ids.every((id) => typeof Object(entry)[id] === "string"))
  );
}

/** Schemas, whose members are sorted. Other members keep their order, the most important first. */
const schemas: ReadonlySet<string> = new Set(["input", "output", "payload", "message", "errors"]);
const sets: ReadonlySet<string> = new Set(["required", "enum", "type"]);

function ordered(value: unknown): unknown {
  return mapped(value, (name, part) => (schemas.has(name) ? sorted(part) : ordered(part)));
}

function sorted(value: unknown): unknown {
  const members = mapped(value, (name, part) =>
    sets.has(name) && Array.isArray(part)
      ? sortedBy(part.map(sorted), (item) => JSON.stringify(item))
      : sorted(part),
  );
  return isObject(members)
    ? Object.fromEntries(sortedBy(Object.entries(members), ([name]) => name))
    : members;
}

function mapped(value: unknown, change: (name: string, part: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((part) => change("", part));
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, change(name, part)]),
  );
}
