import { hash } from "node:crypto";
import { comparedAs } from "../once/fingerprint.ts";
import { bodyOfAnotherType, malformed, refuseEncoded } from "./input.ts";

/** Most fields and files of a body, and longest name and type of a file, in characters. */
const [maxParts, longestText] = [1_000, 255];

type Fields = Record<string, unknown>;

/**
 * Parses `multipart/form-data` with Node's own parser. Returns an object without a prototype, with
 * an array for a repeated name, and a `File` for each file. Leaves out a file that the user did not
 * choose, which browsers send without a name and without content.
 *
 * @returns `undefined` for an empty body.
 * @throws FrameworkError `unsupported_media_type`; `malformed_request` for a body that cannot be
 * parsed, more than 1,000 parts, and a file whose name or type is too long, or whose name has control
 * characters.
 */
export async function readMultipart(
  headers: Readonly<Record<string, string>>,
  bytes: Uint8Array,
): Promise<Fields | undefined> {
  refuseEncoded(headers["content-encoding"], bytes);
  if (bytes.byteLength === 0) return undefined;
  const boundary = boundaryOf(headers["content-type"]);
  if (hasTooMany(bytes, `--${boundary}`))
    throw malformed(`The body has more than ${maxParts} parts`);
  const fields: Fields = Object.create(null);
  for (const [name, part] of await parsed(bytes, boundary)) {
    if (typeof part === "string") add(fields, name, part);
    else if (part.name !== "" || part.size > 0) add(fields, name, await comparable(part));
  }
  return fields;
}

/** Characters and length of a boundary (RFC 2046). */
const boundaryPattern =
  /;\s*boundary=(?:"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])"|([\w'+.-]{1,70}))\s*(?:;|$)/i;

function boundaryOf(contentType = ""): string {
  if (!/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType))
    throw bodyOfAnotherType("multipart/form-data");
  const [, quoted, bare] = boundaryPattern.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) throw malformed("The Content-Type has no valid boundary");
  return boundary;
}

/** Counts before parsing, because each part takes much more memory than its bytes. */
function hasTooMany(bytes: Uint8Array, delimiter: string): boolean {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let found = 0;
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + 1))
    if (++found > maxParts + 1) return true; // one more closes the body
  return false;
}

async function parsed(bytes: Uint8Array, boundary: string): Promise<FormData> {
  const headers = { "content-type": `multipart/form-data; boundary="${boundary}"` };
  try {
    // Safe cast: no host keeps a body in shared memory.
    return await new Response(bytes as Uint8Array<ArrayBuffer>, { headers }).formData();
  } catch {
    throw malformed("The body is not valid multipart/form-data");
  }
}

function add(fields: Fields, name: string, value: unknown): void {
  const present = fields[name];
  if (present === undefined) fields[name] = value;
  else if (Array.isArray(present)) present.push(value);
  else fields[name] = [present, value];
}

/** A retry is the same request if name, type and content are the same. The boundary may differ. */
async function comparable(file: File): Promise<File> {
  const { name, type } = file;
  if (name.length > longestText || /\p{Cc}/u.test(name))
    throw malformed("The body has a file whose name is too long, or has control characters");
  if (type.length > longestText) throw malformed("The body has a file whose type is too long");
  const content = hash("sha256", new Uint8Array(await file.arrayBuffer()), "base64url");
  const value = hash("sha256", JSON.stringify([name, type, content]), "base64url");
  // Enumerable, because Node's deep equality would otherwise take any two files for equal.
  return Object.defineProperty(file, comparedAs, { value, enumerable: true });
}
