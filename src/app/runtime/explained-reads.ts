import { access, allows, type User } from "../../base/identity/access.ts";
import type { ConfigReads, ReadSource } from "../../parts/config/read/resolver.ts";
import type { RowOwner } from "../../parts/config/read/rows.ts";

export interface ExplainedReads extends ConfigReads {
  /**
   * Adds the reads to `headers` if `user` may see them (`access.systemAdmin`), and forbids caching
   * the response.
   */
  addTo(headers: Record<string, string>, user: User): void;
}

/** Of the header, in bytes. Gateways accept about 10 KB of headers in a response. */
const maxHeaderBytes = 4_096;
/** A handler may read a key for any number of tenants. */
const maxReads = 1_000;

interface Read {
  readonly owner: RowOwner;
  readonly id: string;
  readonly source: ReadSource;
  readonly version: number | undefined;
}

/** Keeps the last read of each key and owner. */
export function createExplainedReads(): ExplainedReads {
  const reads = new Map<string, Read>();
  let forgotten = 0;
  return {
    note: (owner, id, source, version) => {
      const name = JSON.stringify([id, owner.tenantId, owner.userId]);
      if (reads.size < maxReads || reads.has(name)) reads.set(name, { owner, id, source, version });
      else forgotten += 1;
    },
    addTo: (headers, user) => {
      if (!allows(access.systemAdmin, user)) return;
      const members = [...reads.values()].map((read) => memberOf(read, user));
      const isReplay = headers["idempotent-replayed"] === "true";
      headers["x-keelson-config"] =
        listOf(members, forgotten) ?? (isReplay ? "none;replayed" : "none");
      headers["cache-control"] = "no-store";
    },
  };
}

/** Formats a member of an RFC 9651 list. The key and its source are valid tokens. */
function memberOf({ owner, id, source, version }: Read, { tenantId, id: userId }: User): string {
  const isOwn = owner.tenantId === tenantId && owner.userId === userId;
  return `${id};source=${source}${version === undefined ? "" : `;version=${version}`}${isOwn ? "" : ";other-owner"}`;
}

/** Joins as many members as fit, and adds how many are left out. */
function listOf(members: readonly string[], forgotten: number): string | undefined {
  if (members.length === 0) return undefined;
  const whole = members.join(", ");
  if (forgotten === 0 && whole.length <= maxHeaderBytes) return whole;
  let text = "";
  let shown = 0;
  for (const member of members) {
    if (text.length + member.length > maxHeaderBytes - 40) break;
    text += `${member}, `;
    shown += 1;
  }
  return `${text}truncated;left-out=${members.length - shown + forgotten}`;
}
