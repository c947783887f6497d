import { types } from "node:util";
import { isError, membersText, startWalk } from "./json-text.ts";
import { metricNames, renaming } from "./record-names.ts";
import { harmless, type Redaction } from "./redaction.ts";

export interface RecordRules {
  readonly redaction: Redaction;
  /** The record's own names and {@link metricNames}. */
  readonly reserved: ReadonlySet<string>;
  /** Whether only context fields, not data fields, may have a name. Default: `false`. */
  readonly isTaken?: (name: string) => boolean;
  /** `undefined` if the value cannot be written as plain text. */
  readonly plainMember: (name: string) => PlainMember | undefined;
  /** Cache of `"msg":"text"` by message. Nearly all messages are constants. */
  readonly messages: Map<string, string>;
}

/** Caches the last value, because values such as a tenant repeat. */
interface PlainMember {
  readonly json: string;
  value: string;
  text: string;
}

export function createRecordRules(redaction: Redaction, ownNames: Iterable<string>): RecordRules {
  const reserved = new Set([...metricNames, ...ownNames]);
  const remembered = new Map<string, PlainMember>();
  const learn = (name: string): PlainMember | undefined => {
    const { json, secret } = redaction.member(name);
    if (secret || reserved.has(name) || json.length > plainLimits.characters) return undefined;
    const member = { json, value: "", text: `${json}"",` };
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

export const contextLimits = Object.freeze({
  /** Characters of one field, so that a long field leaves room for others. */
  fieldCharacters: 1_024,
  /** Characters of all fields, including the parents'. Further fields are left out. */
  characters: 16_384,
});

/** Limits of the fast path. */
const plainLimits = Object.freeze({ fields: 16, characters: 256, rememberedNames: 500 });

/** Context of a logger and its parents, written for the first line that has it. */
export class LogContext {
  readonly #rules: RecordRules;
  readonly #added: unknown;
  readonly #parent: LogContext | undefined;
  #fields: ReadonlyMap<string, string> | undefined;
  #text: string | undefined;
  /** Names of the fields if the fast path wrote them without `#fields`. */
  #plainNames: readonly string[] | undefined;
  /** Characters left for children. */
  #left = 0;

  constructor(rules: RecordRules, added?: unknown, parent?: LogContext) {
    this.#rules = rules;
    this.#added = added;
    this.#parent = parent;
  }

  child(added: unknown): LogContext {
    return new LogContext(this.#rules, added, this);
  }

  get fields(): ReadonlyMap<string, string> {
    this.#fields ??= this.#write();
    return this.#fields;
  }

  /** All fields, each followed by a comma. */
  get text(): string {
    this.#text ??=
      this.#plainText() ?? [...this.fields.values()].map((field) => `${field},`).join("");
    return this.#text;
  }

  has(name: string): boolean {
    return this.#plainNames?.includes(name) ?? this.fields.has(name);
  }

  /** Uses a loop, because recursion through a long chain of children may exceed the stack. */
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

  /** Returns the number of characters left. */
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

  /** Fast path for nearly all contexts: a few short plain strings below a parent without fields. */
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
    try {
      for (const name of names) {
        const value = source[name];
        if (value === undefined) continue;
        const member = plainMember(name);
        if (member === undefined || typeof value !== "string") return undefined;
        if (value !== member.value) {
          if (value.length > plainLimits.characters || !harmless.test(value)) return undefined;
          member.value = value;
          member.text = `${member.json}"${value}",`;
        }
        text += member.text;
        written.push(name);
      }
    } catch {
      return undefined; // a getter threw
    }
    this.#plainNames = written;
    return text;
  }
}

export interface Fields {
  readonly source: Readonly<Record<string, unknown>>;
  readonly names: readonly string[];
}

export const noFields: Fields = Object.freeze({
  source: Object.freeze({}),
  names: Object.freeze([]),
});

/**
 * Finds the fields in data or a context, for which plain JavaScript may pass anything: an error
 * becomes the field `error`, any other value without fields the field `otherwise`.
 */
export function fieldsOf(given: unknown, otherwise: string): Fields {
  if (given === undefined || given === null) return noFields;
  if (typeof given !== "object") return oneField(otherwise, given);
  try {
    if (isObjectOfFields(given))
      return { source: given as Fields["source"], names: Object.keys(given) }; // safe: only read
    return oneField(isError(given) ? "error" : otherwise, given);
  } catch {
    // A Proxy trap threw.
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
