import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A message of docs/messages.md: its levels, and its fields in addition to the usual ones. */
export interface KnownMessage {
  readonly levels: readonly string[];
  readonly fields: ReadonlySet<string>;
}

/** Fields of an error: "the error" in a cell of fields. */
const ofErrors = ["error", "status", "message", "fields", "stack", "causes"];

const page = join(import.meta.dirname, "../../docs/messages.md");

/** The fields that lines have by the request or message that they are of, by docs/messages.md. */
export function usualFields(): ReadonlySet<string> {
  const [, section = ""] =
    /\n## Usual fields\n([\s\S]*?)\n## /.exec(readFileSync(page, "utf8")) ?? [];
  return new Set(
    [...section.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, names = ""]) => namesIn(names)),
  );
}

/** The messages of docs/messages.md. */
export function knownMessages(): ReadonlyMap<string, KnownMessage> {
  const text = readFileSync(page, "utf8");
  const known = new Map<string, KnownMessage>();
  for (const [, names = "", level = "", fields = ""] of text.matchAll(
    /^\| (`[^|`]*\.[^|]*) \| ([^|]*) \| ([^|]*)\| [^|]*\|$/gm,
  )) {
    const message = {
      levels: level.match(/\b(?:debug|info|warn|error)\b/g) ?? [],
      fields: new Set([...namesIn(fields), ...(fields.includes("the error") ? ofErrors : [])]),
    };
    for (const name of namesIn(names)) known.set(name, message);
  }
  return known;
}

/** The words between code marks. */
function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
}
