import { hash } from "node:crypto";

/** Group of the messages without a tenant, which share it. */
const noTenant = "-";
const hashed = "sha256:";

/**
 * Message group of a tenant on a standard queue. SQS takes 1 to 128 ASCII letters, digits and
 * punctuation, EventBridge 100. Any other tenant has a hash, and no two tenants share a group.
 */
export function tenantGroup(tenantId: string | undefined): string {
  if (tenantId === undefined) return noTenant;
  const isTaken = tenantId === noTenant || tenantId.startsWith(hashed);
  const isPlain = /^[\x21-\x7e]{1,100}$/.test(tenantId);
  return isPlain && !isTaken ? tenantId : `${hashed}${hash("sha256", tenantId, "base64url")}`;
}
