import { types } from "node:util";
import { isError, membersText, readMember, startWalk } from "./json-text.ts";
import { isHarmless } from "./quoted-text.ts";
import { metricNames, renaming } from "./record-names.ts";
import type { Redaction } from "./redaction.ts";

/** What the records of one server have in common. */
export interface RecordRules {
  readonly redaction: Redaction;
  /** Names that neither context nor data may have: of what stands in a record beside them, and {@link metricNames}. */
  readonly reserved: ReadonlySet<string>;
  /** Names beside these that data cannot overwrite, but the context may. Default: none. */
  readonly isTaken?: (name: string) => boolean;
  /** A name with the quotes around it, `:` and the quote of a text after it; `undefined` where a plain text may not follow. */
  readonly plainMember: (name: string) => PlainMember | undefined;
  /** `"msg":"text"` of messages that were written before: nearly all are constants. */
  readonly messages: Map<string, string>;
}

/** A name whose texts are written as they are, and the last of them: handlers and tenants come again and again. */
interface PlainMember {
  /** `"name":"` */
  readonly start: string;
  value: string;
  text: string;
}

/** Creates {@link RecordRules}; `ownNames` are those of what stands in a record beside context and data. */
export function createRecordRules(redaction: Redaction, ownNames: Iterable<string>): RecordRules {
  const reserved = new Set([...metricNames, ...ownNames]);
  const remembered = new Map<string, PlainMember>();
  const learn = (name: string): PlainMember | undefined => {
    const { json, secret } = redaction.member(name);
    if (secret || reserved.has(name) || json.length > plainLimits.characters) return undefined;
    const member = { start: `${json}"`, value: "", text: `${json}"",` };
    if (remembered.size < plainLimits.rememberedNames) remembered.set(name, member);
    return member;
  };
  return {
    redaction,
    reserved,
    plainMember: (name) => remembered.get(name) ?? learn(name),
    messages: new Map(),
  };
}

/** How long a context may become. */
export const contextLimits = Object.freeze({
  /** Characters of JSON for one field, so that a long one does not drive out the others. */
  fieldCharacters: 1_024,
  /** Characters of JSON for all fields, those of the parents included; fields beyond are left out. */
  characters: 16_384,
});

/** Far within the limits above. */
const plainLimits = Object.freeze({ fields: 16, characters: 256, rememberedNames: 100 });

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
  /** The names of the fields, where they were written without `#fields`. */
  #plainNames: readonly string[] | undefined;
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
    this.#text ??= this.#plainText() ?? this.#joined();
    return this.#text;
  }

  /** Whether there is a field of this name. */
  has(name: string): boolean {
    return this.#plainNames?.includes(name) ?? this.fields.has(name);
  }

  #joined(): string {
    let text = "";
    for (const field of this.fields.values()) text += `${field},`;
    return text;
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
    const { redaction, reserved } = this.#rules;
    const { source, names } = fieldsOf(this.#added, "context");
    const nameOf = renaming("context", names, (name) => reserved.has(name));
    let left = characters;
    for (const name of names) {
      if (left <= 0) {
        fields.set("[cut]", '"[cut]":true');
        break;
      }
      const shown = nameOf(name);
      const walk = startWalk(redaction, Math.min(contextLimits.fieldCharacters, left));
      walk.within.push(source);
      const field = membersText(source, [name], walk, redaction.root, () => shown);
      if (field !== "") fields.set(shown, field);
      left -= field.length;
    }
    return left;
  }

  /**
   * What nearly all contexts are: a few short texts with nothing to bound, to escape or to redact, below a parent
   * without fields. `undefined` where it is another one.
   */
  #plainText(): string | undefined {
    const { redaction, plainMember } = this.#rules;
    if (
      this.#parent === undefined ||
      this.#parent.#added !== undefined ||
      redaction.root.length > 0
    )
      return undefined;
    const { source, names } = fieldsOf(this.#added, "context");
    if (names.length > plainLimits.fields) return undefined;
    const written: string[] = [];
    let text = "";
    for (const name of names) {
      const value = readMember(source, name);
      if (value === undefined) continue;
      const member = plainMember(name);
      if (member === undefined || typeof value !== "string") return undefined;
      if (value !== member.value) {
        if (value.length > plainLimits.characters || !isHarmless(value)) return undefined;
        member.value = value;
        member.text = `${member.start}${value}",`;
      }
      text += member.text;
      written.push(name);
    }
    this.#plainNames = written;
    return text;
  }
}

/** Where fields are read from, and the names they have there. */
export interface Fields {
  readonly source: object;
  readonly names: readonly string[];
}

/** No fields at all. */
export const noFields: Fields = Object.freeze({
  source: Object.freeze({}),
  names: Object.freeze([]),
});

/**
 * Finds the fields of what was given as data or context. Plain JavaScript gives anything: an error
 * becomes the field `error`, whatever else is not an object of fields the field `otherwise`.
 */
export function fieldsOf(given: unknown, otherwise: string): Fields {
  if (given === undefined || given === null) return noFields;
  if (typeof given !== "object") return oneField(otherwise, given);
  try {
    if (isObjectOfFields(given)) return { source: given, names: Object.keys(given) };
    return oneField(isError(given) ? "error" : otherwise, given);
  } catch {
    // A Proxy whose traps throw.
    return oneField(otherwise, given);
  }
}

function oneField(name: string, value: unknown): Fields {
  return { source: { [name]: value }, names: [name] };
}

function isObjectOfFields(given: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype === Object.prototype || prototype === null) return true;
  const hasTextOfItsOwn =
    "toJSON" in given || Symbol.iterator in given || ArrayBuffer.isView(given) || isError(given);
  return !(hasTextOfItsOwn || types.isDate(given) || types.isBoxedPrimitive(given));
}
