import { FrameworkError } from "../../base/errors/errors.ts";
import type { Place } from "../../base/secrets/sealed.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import type { AnswerCipher } from "./answer.ts";

/** Encrypts stored answers with the key ring. An answer decrypts only in the row of its claim. */
export function answerCipher(secrets: Secrets, place: Place): AnswerCipher {
  return {
    seal: async (data) => {
      const sealed = await secrets.seal(Buffer.from(data).toString("base64"), place);
      return Buffer.from(
        JSON.stringify({ key: sealed.key, data: Buffer.from(sealed.data).toString("base64") }),
      );
    },
    open: async (data) => {
      // Safe cast: only `seal` writes this data.
      const { key, data: sealed } = JSON.parse(Buffer.from(data).toString("utf8")) as {
        readonly key: string;
        readonly data: string;
      };
      await secrets.prepare(key);
      const opened = secrets.open({ sealed: 1, key, data: Buffer.from(sealed, "base64") }, place);
      if ("text" in opened) return Buffer.from(opened.text, "base64");
      throw new FrameworkError(
        "config_unavailable",
        "The answer of before cannot be opened at the moment",
        {
          cause: new Error(opened.locked),
        },
      );
    },
  };
}
