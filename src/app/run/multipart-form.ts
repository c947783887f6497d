import type { HttpRequest } from "../../parts/http/message.ts";

/** Reads a multipart body. Its parser is loaded with the first one. */
export async function readParts({ headers }: Pick<HttpRequest, "headers">, bytes: Uint8Array) {
  return (await import("../../parts/http/multipart.ts")).readMultipart(headers, bytes);
}
