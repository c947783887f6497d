import { afterEach } from "vitest";
import * as records from "../../src/base/log/log-record.ts";
import { type KnownMessage, knownMessages, usualFields } from "./messages.ts";

// Every line that is logged in this process, by whatever server, is held against docs/messages.md: each kind of line once.

const state = Symbol.for("keelson.test.known-lines");

interface State {
  readonly known: ReadonlyMap<string, KnownMessage>;
  readonly usual: ReadonlySet<string>;
  readonly seen: Set<string>;
  readonly wrong: string[];
}

// Files that share a process share this, and the modules that it has changed.
const { wrong } = follow(globalThis as { [state]?: State });

afterEach(() => {
  const found = wrong.splice(0);
  if (found.length > 0)
    throw new Error(`lines that are not as docs/messages.md has them:\n${found.join("\n")}`);
});

function follow(shared: { [state]?: State }): State {
  if (shared[state] !== undefined) return shared[state];
  const made: State = { known: knownMessages(), usual: usualFields(), seen: new Set(), wrong: [] };
  shared[state] = made;
  const { recordText, recordFields } = records;
  const replaced = {
    recordText: (...record: Parameters<typeof recordText>) => {
      const [level, context, msg, data] = record;
      const text = recordText(...record);
      check(made, { level, context, msg, data });
      return text;
    },
    recordFields: (...record: Parameters<typeof recordFields>) => {
      const [context, msg, data] = record;
      const fields = recordFields(...record);
      check(made, { level: undefined, context, msg, data });
      return fields;
    },
  };
  // Their importers read them again at each call.
  for (const [name, value] of Object.entries(replaced)) {
    Object.defineProperty(records, name, {
      configurable: true,
      enumerable: true,
      get: () => value,
    });
  }
  return made;
}

interface Line {
  /** `undefined` where another logger writes it. */
  readonly level: string | undefined;
  readonly context: { readonly text: string };
  readonly msg: unknown;
  readonly data: unknown;
}

/** A message that keelson does not have is the application's. */
function check({ known, usual, seen, wrong }: State, { level, context, msg, data }: Line): void {
  const message = typeof msg === "string" ? known.get(msg) : undefined;
  if (message === undefined) return;
  const names = typeof data === "object" && data !== null ? namesOf(data) : [];
  const kind = `${level} ${msg} ${names.join()}`;
  if (seen.has(kind)) return;
  seen.add(kind);
  if (level !== undefined && !message.levels.includes(level))
    wrong.push(`${msg}: the level is ${level}`);
  for (const name of names) if (!message.fields.has(name)) wrong.push(`${msg}: the field ${name}`);
  const around = Object.keys(JSON.parse(`{${context.text.slice(0, -1)}}`) as object);
  for (const name of around)
    if (!usual.has(name)) wrong.push(`${msg}: the field ${name} of its context`);
}

/** The fields that have a value; hostile data of a test is the logger's own concern. */
function namesOf(data: object): string[] {
  try {
    return Object.entries(data).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  } catch {
    return [];
  }
}
