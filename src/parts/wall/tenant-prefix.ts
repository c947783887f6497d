import { hash } from "node:crypto";

/** Never occurs in an encoded tenant, so no tenant is a prefix of another. */
export const separator = "/";

/** Limit of a session tag's value. */
const maxTagLength = 256;

/** Prefix of the partition keys of a tenant's rows. @throws TypeError without a tenant. */
export function tenantPrefix(tenantId: unknown): string {
  if (typeof tenantId !== "string" || tenantId === "")
    throw new TypeError("there is no tenant; only a run of a tenant has keys");
  return encodeTenant(tenantId) + separator;
}

/**
 * Encodes a tenant uniquely as the value of a session tag. Letters, digits and `_ . @ -` stay. Any
 * other UTF-16 unit becomes `=` and two hexadecimal digits, or `==` and four. A result longer than
 * a tag allows becomes `=s` and a hash.
 */
export function encodeTenant(tenantId: string): string {
  if (plain.test(tenantId)) return tenantId;
  const encoded = tenantId.replace(/[^A-Za-z0-9_.@-]/g, encodeUnit);
  // `=s` is not an encoded unit, so no other tenant has the same encoding.
  return encoded.length <= maxTagLength ? encoded : `=s${hash("sha256", encoded, "base64url")}`;
}

const plain = /^[A-Za-z0-9_.@-]{1,256}$/;

// Without the `u` flag: a character above U+FFFF is two units, a lone surrogate like any other.
function encodeUnit(unit: string): string {
  const code = unit.charCodeAt(0).toString(16);
  return code.length <= 2 ? `=${code.padStart(2, "0")}` : `==${code.padStart(4, "0")}`;
}
