import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";

/** A value that only a key of the ring opens, as it is stored. */
export interface Sealed {
  /** The version of this format: 1. Another is sealed too, and does not open. */
  readonly sealed: number;
  /** The name of the key in the ring. */
  readonly key: string;
  /** Initialisation vector, tag and ciphertext. */
  readonly data: Uint8Array;
  /** `version`: it opens only while its row has the version that it was sealed for. Absent: at any version. */
  readonly bound?: unknown;
}

/** Where a sealed value stands, from the outside in: the table, its partition key, its sort key. Elsewhere it does not open. */
export type Place = readonly string[];

/** 96 bits, as NIST SP 800-38D recommends for GCM: random ones are safe for 2^32 values a key. */
const vectorBytes = 12;
const tagBytes = 16;

/** Seals a text with AES-256-GCM, bound to the place where it will stand. */
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

/** @throws Error where the value was sealed with another key, for another place, or was changed. */
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
 * Whether a stored value is sealed, be it in a form that only a later version knows: that one must not be taken for
 * a value in plain text, for which the next level decides. Checked writes store texts, numbers and booleans, so nobody
 * can forge one through them.
 */
export function isSealed(value: unknown): value is Sealed {
  if (typeof value !== "object" || value === null) return false;
  const { sealed, key, data } = value as Partial<Record<keyof Sealed, unknown>>;
  return typeof sealed === "number" && typeof key === "string" && data instanceof Uint8Array;
}

/** The parts, each after its length in bytes: no two places give the same bytes. */
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
