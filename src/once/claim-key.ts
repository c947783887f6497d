import { hash } from "node:crypto";
import { FrameworkError } from "../errors/errors.ts";
import type { ClaimKey } from "./claim-store.ts";
import type { OnceBy } from "./once-by.ts";

/** The longest ID that stands in a sort key as it is; a longer one is replaced by its hash. */
const longestId = 512;

/**
 * The key of a claim: the namespace hashed, each part after its length, so that no two
 * namespaces meet whatever their parts contain; the ID as the specification has it (3.2).
 */
export function claimKey(namespace: readonly string[], id: string): ClaimKey {
  const parts = namespace.map((part) => `${Buffer.byteLength(part)}:${part}`).join("");
  return { partition: hash("sha256", parts, "base64url"), sort: `dedup:${shortId(id)}` };
}

/** A key as a text, for maps within a process. */
export function keyText({ partition, sort }: ClaimKey): string {
  return `${partition} ${sort}`;
}

function shortId(id: string): string {
  return id.length <= longestId ? id : `sha256:${hash("sha256", id, "base64url")}`;
}

/** The ID that a write is claimed by. */
export interface WriteId {
  /** Which header it came in; each has a namespace of its own. */
  readonly by: "idempotency-key" | "x-request-id";
  readonly id: string;
}

/** Visible ASCII without what separates in a structured field; several joined by `, ` are none. */
const bare = /^[!#-+\-./0-9:<-[\]-~]{1,255}$/;
/** A string of RFC 8941: quoted, `"` and `\` after a `\`. */
const quoted = /^"((?:[ !#-[\]-~]|\\["\\]){1,255})"$/;

/**
 * The ID that counts (specification 6.6): `Idempotency-Key` before `X-Request-ID`; `undefined` where
 * the client sent none. A request ID that was replaced in the log still counts, by its hash.
 *
 * @param isSignedIn - a request ID without a signed-in caller claims nothing.
 * @throws FrameworkError `malformed_request` for an `Idempotency-Key` that is none.
 */
export function writeIdOf(
  headers: Readonly<Record<string, string>>,
  { requestId, once, isSignedIn }: { readonly requestId: string; readonly once: OnceBy; readonly isSignedIn: boolean },
): WriteId | undefined {
  if (once === false) return undefined;
  const key = headers["idempotency-key"];
  if (key !== undefined) return { by: "idempotency-key", id: parseKey(key) };
  const given = headers["x-request-id"];
  if (given === undefined || once === "idempotency-key" || !isSignedIn) return undefined;
  const id = given === requestId ? given : `sha256:${hash("sha256", given, "base64url")}`;
  return { by: "x-request-id", id };
}

function parseKey(header: string): string {
  const text = header.trim();
  const [, inner] = quoted.exec(text) ?? [];
  if (inner !== undefined) return inner.replaceAll(/\\(["\\])/g, "$1");
  if (bare.test(text)) return text;
  throw new FrameworkError(
    "malformed_request",
    "The Idempotency-Key is not valid; send 1 to 255 visible ASCII characters, such as a UUID, plain or as a quoted string",
  );
}
