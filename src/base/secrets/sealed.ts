import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";

/** A stored value that only a key of the ring opens. */
export interface Sealed {
  /** Version of the format: 1. Values with another version also count as sealed but do not open. */
  readonly sealed: number;
  /** Name of the key in the ring. */
  readonly key: string;
  /** Initialization vector, tag and ciphertext. */
  readonly data: Uint8Array;
  /**
   * `version` restricts the value to the row version that it was sealed for. If absent, the value
   * opens at any version.
   */
  readonly bound?: unknown;
}

/**
 * Location of a sealed value, from the outside in: table, partition key, sort key. The value does
 * not open anywhere else.
 */
export type Place = readonly string[];

/** 96 bits, as NIST SP 800-38D recommends for GCM. Random ones are safe for 2^32 values per key. */
const vectorBytes = 12;
const tagBytes = 16;

/** Seals text with AES-256-GCM and binds it to its storage location. */
export function sealText(
  text: string,
  place: Place,
  key: { readonly name: string; readonly secret: KeyObject },
): Sealed {
  const vector = randomBytes(vectorBytes);
  const cipher = createCipheriv("aes-256-gcm", key.secret, vector).setAAD(additionalData(place));
  const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return {
    sealed: 1,
    key: key.name,
    data: Buffer.concat([vector, cipher.getAuthTag(), ciphertext]),
  };
}

/**
 * Opens a sealed value.
 *
 * @throws Error if the value was changed, or sealed with another key or for another place.
 */
export function openText({ data }: Sealed, place: Place, secret: KeyObject): string {
  if (data.byteLength < vectorBytes + tagBytes)
    throw new RangeError("the sealed value is too short");
  const decipher = createDecipheriv("aes-256-gcm", secret, data.subarray(0, vectorBytes), {
    authTagLength: tagBytes,
  });
  decipher
    .setAAD(additionalData(place))
    .setAuthTag(data.subarray(vectorBytes, vectorBytes + tagBytes));
  return Buffer.concat([
    decipher.update(data.subarray(vectorBytes + tagBytes)),
    decipher.final(),
  ]).toString("utf8");
}

/**
 * Reports whether a stored value is sealed, including formats of later versions. Such a value must
 * not count as plain text, because then the next level of the cascade would decide. Checked writes
 * only store strings, numbers and booleans, so they cannot forge a sealed value.
 */
export function isSealed(value: unknown): value is Sealed {
  if (typeof value !== "object" || value === null) return false;
  const { sealed, key, data } = value as Partial<Record<keyof Sealed, unknown>>;
  return typeof sealed === "number" && typeof key === "string" && data instanceof Uint8Array;
}

/** Encodes each part after its length in bytes, so that two places never produce the same bytes. */
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
