import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";

export interface Sealed {
  /** Version of the format: 1. Other versions are recognized, but cannot be decrypted. */
  readonly sealed: number;
  readonly key: string;
  /** Initialization vector, authentication tag and ciphertext. */
  readonly data: Uint8Array;
  /** `"version"` for a value that is decrypted only at the row version it was encrypted for. */
  readonly bound?: unknown;
}

/** Table and keys of a value. It can be decrypted only in this place. */
export type Place = readonly string[];

/** NIST SP 800-38D recommends 96 bits for GCM; random vectors are safe for 2^32 values per key. */
const vectorBytes = 12;
const tagBytes = 16;

export function sealText(
  text: string,
  place: Place,
  key: { readonly name: string; readonly secret: KeyObject },
): Sealed {
  const vector = randomBytes(vectorBytes);
  const cipher = createCipheriv("aes-256-gcm", key.secret, vector).setAAD(additionalData(place));
  const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  const data = Buffer.concat([vector, cipher.getAuthTag(), ciphertext]);
  return { sealed: 1, key: key.name, data };
}

/** @throws Error if the value was changed, or encrypted with another key or for another place. */
export function openText({ data }: Sealed, place: Place, secret: KeyObject): string {
  if (data.byteLength < vectorBytes + tagBytes)
    throw new RangeError("the sealed value is too short");
  const vector = data.subarray(0, vectorBytes);
  const tag = data.subarray(vectorBytes, vectorBytes + tagBytes);
  const decipher = createDecipheriv("aes-256-gcm", secret, vector, { authTagLength: tagBytes });
  decipher.setAAD(additionalData(place)).setAuthTag(tag);
  const text = decipher.update(data.subarray(vectorBytes + tagBytes));
  return Buffer.concat([text, decipher.final()]).toString("utf8");
}

/**
 * Also accepts later formats: as plain text, such a value would let the next level of the cascade
 * decide. `setConfig` stores only strings, numbers and booleans, so it cannot forge a sealed value.
 */
export function isSealed(value: unknown): value is Sealed {
  if (typeof value !== "object" || value === null) return false;
  const { sealed, key, data } = value as Partial<Record<keyof Sealed, unknown>>;
  return typeof sealed === "number" && typeof key === "string" && data instanceof Uint8Array;
}

/** Writes lengths as well, so that two places never give the same bytes. */
function additionalData(place: Place): Buffer {
  return Buffer.concat(
    place.flatMap((part) => {
      const bytes = Buffer.from(part);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.byteLength);
      return [length, bytes];
    }),
  );
}
