import { access, allows } from "../../base/identity/access.ts";
import type { User } from "../../base/identity/user.ts";
import type { ConfigReads, ReadSource } from "../../parts/config/read/config-reads.ts";
import type { RowOwner } from "../../parts/config/read/rows.ts";

/** The reads of a request that asks for them. */
export interface ExplainedReads extends ConfigReads {
  /**
   * Says in `headers` what was read, where `user` may know it (`access.systemAdmin`). Nobody may keep such an answer.
   */
  addTo(headers: Record<string, string>, user: User): void;
}

/** How much of a header the reads take: gateways take some 10 KB for all headers of an answer. */
const maxHeaderBytes = 4_096;
/** How many reads are remembered; a handler may read a key for any number of tenants. */
const maxReads = 1_000;

interface Read {
  readonly owner: RowOwner;
  readonly id: string;
  readonly source: ReadSource;
  readonly version: number | undefined;
}

/** Notes reads, of one key and owner the last. */
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

/** A member of a list of RFC 9651: the key is a token, and so is its source. */
function memberOf({ owner, id, source, version }: Read, { tenantId, id: userId }: User): string {
  const isOwn = owner.tenantId === tenantId && owner.userId === userId;
  return `${id};source=${source}${version === undefined ? "" : `;version=${version}`}${isOwn ? "" : ";other-owner"}`;
}

/** As many members as there is room for, and how many are left out; `undefined` for none. */
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
