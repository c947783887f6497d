import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

/** Start of every API key, by which scanners of leaked secrets find it. */
const secretPrefix = "kln_";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const [randomDigits, checksumDigits] = [43, 6];
const form = new RegExp(`^${secretPrefix}[0-9A-Za-z]{${randomDigits + checksumDigits}}$`);
/** Largest multiple of 62 that a byte can hold. Greater bytes would make some digits likelier. */
const fairBytes = 248;

/** Generates a key: the prefix, 43 random Base62 digits (256 bits), six digits of checksum. */
export function generateSecret(draw: (bytes: number) => Uint8Array = randomBytes): string {
  let text = secretPrefix;
  while (text.length < secretPrefix.length + randomDigits) {
    for (const byte of draw(64)) {
      if (byte < fairBytes && text.length < secretPrefix.length + randomDigits)
        text += digits.charAt(byte % digits.length);
    }
  }
  return text + checksumOf(text);
}

/** Whether a string has the form and the checksum of a key. */
export function isWellFormed(text: string): boolean {
  return (
    form.test(text) && text.slice(-checksumDigits) === checksumOf(text.slice(0, -checksumDigits))
  );
}

/** SHA-256 of a key, for storage. Without a salt, because the key has 256 random bits. */
export function hashOfSecret(text: string): string {
  return hash("sha256", text, "base64url");
}

/** CRC-32 in Base62, padded with `0`. */
function checksumOf(text: string): string {
  let left = crc32(text);
  let sum = "";
  for (let digit = 0; digit < checksumDigits; digit += 1) {
    sum = digits.charAt(left % digits.length) + sum;
    left = Math.floor(left / digits.length);
  }
  return sum;
}
