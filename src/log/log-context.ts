import { fieldsOf } from "./fields.ts";
import { membersText, readMember, startWalk } from "./json-text.ts";
import { isHarmless } from "./quoted-text.ts";
import type { Redaction } from "./redaction.ts";

/** What the records of one server have in common. */
export interface RecordRules {
  readonly redaction: Redaction;
  /** Names of what stands in a record beside context and data, hence what these cannot overwrite. */
  readonly reserved: ReadonlySet<string>;
}

/** How long a context may become. */
export const contextLimits = Object.freeze({
  /** Characters of JSON for one field, so that a long one does not drive out the others. */
  fieldCharacters: 1_024,
  /** Characters of JSON for all fields, those of the parents included; fields beyond are left out. */
  characters: 16_384,
});

const shortText = 256;

/**
 * The context of a logger and its parents. A child costs one object; the context is read and written
 * once, for the first line that carries it.
 */
export class LogContext {
  readonly #rules: RecordRules;
  readonly #added: unknown;
  readonly #parent: LogContext | undefined;
  #fields: ReadonlyMap<string, string> | undefined;
  #text: string | undefined;
  /** Characters left for children, once the fields are written. */
  #left = 0;

  constructor(rules: RecordRules, added?: unknown, parent?: LogContext) {
    this.#rules = rules;
    this.#added = added;
    this.#parent = parent;
  }

  /** This context with more fields. One of the same name takes the place of the parent's. */
  child(added: unknown): LogContext {
    return new LogContext(this.#rules, added, this);
  }

  /** `"name":value` by name. */
  get fields(): ReadonlyMap<string, string> {
    this.#fields ??= this.#write();
    return this.#fields;
  }

  /** All fields as they stand in a line, with a comma after each. */
  get text(): string {
    if (this.#text === undefined) {
      let text = "";
      for (const field of this.fields.values()) text += `${field},`;
      this.#text = text;
    }
    return this.#text;
  }

  /** A loop, since a chain of children may be longer than the stack. */
  #write(): ReadonlyMap<string, string> {
    const unwritten: LogContext[] = [];
    let written: LogContext | undefined = this;
    while (written !== undefined && written.#fields === undefined) {
      unwritten.push(written);
      written = written.#parent;
    }
    const fields = new Map(written === undefined ? [] : written.#fields);
    this.#left = written === undefined ? contextLimits.characters : written.#left;
    for (const context of unwritten.reverse()) this.#left = context.#addTo(fields, this.#left);
    return fields;
  }

  /** Writes what this context adds, and gives the characters that are left after it. */
  #addTo(fields: Map<string, string>, characters: number): number {
    const { reserved } = this.#rules;
    const { source, names } = fieldsOf(this.#added, "context");
    let left = characters;
    for (const name of names) {
      if (left <= 0) {
        fields.set("[cut]", '"[cut]":true');
        break;
      }
      const shown = reserved.has(name) ? `context_${name}` : name;
      const field = this.#fieldText(source, name, shown, Math.min(contextLimits.fieldCharacters, left));
      if (field !== "") fields.set(shown, field);
      left -= field.length;
    }
    return left;
  }

  #fieldText(source: object, name: string, shown: string, characters: number): string {
    const { redaction } = this.#rules;
    const value = readMember(source, name);
    // What nearly all fields are: nothing to bound, to escape or to redact.
    if (typeof value === "string" && value.length <= shortText && redaction.root.length === 0 && isHarmless(value)) {
      const { json, secret } = redaction.member(name);
      const length = json.length + value.length + 2;
      if (!secret && shown === name && length < characters) return `${json}"${value}"`;
    }
    const walk = startWalk(redaction, characters);
    walk.within.push(source);
    return membersText(source, [name], walk, redaction.root, () => shown);
  }
}
