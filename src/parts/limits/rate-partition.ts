import { hash } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { User } from "../../base/identity/access.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { RatePartition } from "./rate-store.ts";

export interface RateCaller {
  readonly user: Pick<User, "id" | "tenantId">;
  /** Absent in runs without a request. */
  readonly ip: string | undefined;
}

/** @param own - result of a function `per`. */
export function partitionOf(
  per: Exclude<RateLimit["per"], (...given: never) => unknown> | "own",
  { user: { id, tenantId }, ip }: RateCaller,
  own = "",
): RatePartition {
  switch (per) {
    case "all":
      return everyone;
    case "tenant":
      if (tenantId !== undefined) return { text: bounded(`tenant ${tenantId}`), tenantId };
      break;
    case "user":
      // Without a request there is no address, and tenants must not share a number.
      if (id !== undefined || (tenantId !== undefined && ip === undefined))
        return { text: bounded(`user ${owned(tenantId, id ?? "")}`), tenantId };
      break;
    case "own":
      return { text: bounded(`own ${owned(tenantId, own)}`), tenantId };
    case "ip":
  }
  return { text: `ip ${addressOf(ip)}`, ...(per !== "ip" && { tenantId }) };
}

const everyone: RatePartition = Object.freeze({ text: "all" });

/** Unambiguous, because a tenant's ID may contain any character. */
function owned(tenantId: string | undefined, name: string): string {
  return tenantId === undefined ? `- ${name}` : `${JSON.stringify(tenantId)} ${name}`;
}

const longest = 512;

function bounded(text: string): string {
  return text.length <= longest ? text : `sha256 ${hash("sha256", text, "base64url")}`;
}

/** Returns an IPv4 address, or the /64 of an IPv6 address, which one customer has for themselves. */
export function addressOf(ip: string | undefined): string {
  if (ip === undefined || !ipaddr.isValid(ip)) return "unknown";
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  const groups = address.toByteArray().slice(0, 8);
  return `${ipaddr.fromByteArray([...groups, 0, 0, 0, 0, 0, 0, 0, 0]).toString()}/64`;
}
