import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

/** For development only: the key is never rotated. */
export function createSealer(secret: string) {
  const key = createHash("sha256").update(secret).digest();
  return {
    /** Returns Base64 that only opens with the same `place`. */
    seal(text: string, place: string): string {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64");
    },
    open(sealed: string, place: string): string {
      const bytes = Buffer.from(sealed, "base64");
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12)).setAAD(
        Buffer.from(place),
      );
      decipher.setAuthTag(bytes.subarray(12, 28));
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString(
        "utf8",
      );
    },
  };
}
