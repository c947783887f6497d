/** Ends every prefix. No encoded tenant contains it, so no prefix starts with another prefix. */
export const separator = "/";

/** AWS's limit for the value of a session tag. */
const maxTagLength = 256;

/** Returns the start of a tenant's partition keys. @throws TypeError without a tenant. */
export function tenantPrefix(tenantId: unknown): string {
  if (typeof tenantId !== "string" || tenantId === "")
    throw new TypeError("there is no tenant; only a run of a tenant has keys");
  return encodeTenant(tenantId) + separator;
}

/**
 * A tenant ID as the unique value of a session tag. ASCII letters, digits and `_ . @ -` stay. Any
 * other UTF-16 unit becomes `=` and two hexadecimal digits, or `==` and four. A result that is too
 * long for a tag becomes `=s` and a hash.
 */
export function encodeTenant(tenantId: string): string {
  if (plain.test(tenantId)) return tenantId;
  const encoded = tenantId.replace(/[^A-Za-z0-9_.@-]/g, encodeUnit);
  // `=s` is not an encoded unit, so no other tenant has the same encoding.
  if (encoded.length <= maxTagLength) return encoded;
  // Not imported: a start, which makes keys of tables, would pay 5 ms for it.
  const { hash } = process.getBuiltinModule("node:crypto");
  return `=s${hash("sha256", encoded, "base64url")}`;
}

const plain = /^[A-Za-z0-9_.@-]{1,256}$/;

// Without the `u` flag, each half of a surrogate pair is one unit.
function encodeUnit(unit: string): string {
  const code = unit.charCodeAt(0).toString(16);
  return code.length <= 2 ? `=${code.padStart(2, "0")}` : `==${code.padStart(4, "0")}`;
}
