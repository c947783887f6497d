import { FrameworkError } from "../errors/errors.ts";
import type { BodyKind } from "./message.ts";
import { parseForm } from "./query.ts";

/** What a body comes to: named fields, or one value that arrives as `input.body`. */
export type ParsedBody = { readonly fields: Record<string, unknown> } | { readonly body: unknown } | undefined;

const maxDepth = 64;

/**
 * Parses a request body of the kind that its route takes. An empty body is no body, whatever
 * its type.
 *
 * @throws FrameworkError `unsupported_media_type` for another content type, `malformed_request`
 * for what cannot be parsed.
 */
export function parseBody(kind: BodyKind, contentType: string | undefined, bytes: Uint8Array): ParsedBody {
  if (bytes.byteLength === 0) return undefined;
  if (kind === "bytes") return { body: bytes };
  const { type, charset } = mediaType(contentType);
  if (!accepts[kind](type) || (charset !== undefined && charset !== "utf-8" && charset !== "utf8")) {
    throw new FrameworkError("unsupported_media_type", `The route takes ${names[kind]} in UTF-8`);
  }
  const text = utf8(bytes);
  if (kind === "text") return { body: text };
  if (kind === "form") return { fields: parseForm(text, "body") };
  const value = json(text);
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? { fields: value as Record<string, unknown> } // safe: an object of JSON, without a prototype
    : { body: value };
}

const names: Readonly<Record<Exclude<BodyKind, "bytes">, string>> = {
  json: "application/json",
  form: "application/x-www-form-urlencoded",
  text: "text/*",
};

const accepts: Readonly<Record<Exclude<BodyKind, "bytes">, (type: string) => boolean>> = {
  json: (type) => type === "application/json" || /^application\/[^;]+\+json$/.test(type),
  form: (type) => type === "application/x-www-form-urlencoded",
  text: (type) => type.startsWith("text/"),
};

function mediaType(contentType: string | undefined): { type: string; charset: string | undefined } {
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().split(";");
  const charset = parameters
    .map((parameter) => /^\s*charset="?([^"\s]*)"?\s*$/.exec(parameter)?.[1])
    .find((found) => found !== undefined);
  return { type: type.trim(), charset };
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new FrameworkError("malformed_request", "The body is not valid UTF-8");
  }
}

function json(text: string): unknown {
  assertShallow(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameworkError("malformed_request", "The body is not valid JSON");
  }
  dropPrototypes(value);
  return value;
}

/**
 * Takes the prototype from every object of a parsed body: `__proto__` is a name like any other.
 * In place, not by a reviver: that one is called for each element and holds the event loop for a
 * quarter of a second on a megabyte of `[0,0,...]`. The depth is bounded by `assertShallow`.
 */
function dropPrototypes(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const element of value) dropPrototypes(element);
    return;
  }
  // `JSON.parse` makes only own data properties, so `Object.values` finds `__proto__` too.
  for (const member of Object.values(value)) dropPrototypes(member);
  Object.setPrototypeOf(value, null);
}

/** Counts brackets outside of strings, before anything recursive sees the text. */
function assertShallow(text: string): void {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const character = text.charCodeAt(index);
    if (inString) {
      if (character === 0x5c) index++;
      else if (character === 0x22) inString = false;
    } else if (character === 0x22) inString = true;
    else if (character === 0x7b || character === 0x5b) {
      if (++depth > maxDepth) throw new FrameworkError("malformed_request", `The body is nested deeper than ${maxDepth} levels`);
    } else if (character === 0x7d || character === 0x5d) depth--;
  }
}
