import { hash } from "node:crypto";

/** Derives a UUID of version 8 (RFC 9562 5.8) from its parts. A repeated run gets equal IDs. */
export function derivedId(...parts: readonly (string | number)[]): string {
  const text = parts.map((part) => `${Buffer.byteLength(String(part))}:${part}`).join("");
  const digits = hash("sha256", text, "hex");
  const variant = ((Number.parseInt(digits.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20, 32)}`;
}
