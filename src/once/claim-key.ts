import { hash } from "node:crypto";
import type { ClaimKey } from "./claim-store.ts";

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
