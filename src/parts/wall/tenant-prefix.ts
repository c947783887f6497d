import { hash } from "node:crypto";

/** Ends a tenant in a key; never a part of one, so that no tenant is the beginning of another. */
export const separator = "/";

/** How long the value of a session tag may be. */
const maxTagLength = 256;

/**
 * What the partition keys of a tenant's rows begin with: the tenant, as {@link encodeTenant} writes it, and a separator.
 *
 * @throws TypeError without a tenant.
 */
export function tenantPrefix(tenantId: unknown): string {
  if (typeof tenantId !== "string" || tenantId === "")
    throw new TypeError("there is no tenant; only a run of a tenant has keys");
  return encodeTenant(tenantId) + separator;
}

/**
 * Writes a tenant so that the value of a session tag can hold it, each tenant differently: letters, digits and `_ . @ -` stand for
 * themselves, any other UTF-16 unit is `=` and two hexadecimal digits, or `==` and four. What becomes longer than a tag may be is `=s` and its
 * hash.
 */
export function encodeTenant(tenantId: string): string {
  if (plain.test(tenantId)) return tenantId;
  const encoded = tenantId.replace(/[^A-Za-z0-9_.@-]/g, encodeUnit);
  // `=s` is no encoded unit, so no other tenant has what follows.
  return encoded.length <= maxTagLength ? encoded : `=s${hash("sha256", encoded, "base64url")}`;
}

const plain = /^[A-Za-z0-9_.@-]{1,256}$/;

// Without the flag `u` a character beyond the 16 bits is two units, and half of one is a unit like any other.
function encodeUnit(unit: string): string {
  const code = unit.charCodeAt(0).toString(16);
  return code.length <= 2 ? `=${code.padStart(2, "0")}` : `==${code.padStart(4, "0")}`;
}
