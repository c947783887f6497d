export interface SigningCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

interface UnsignedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly region: string;
  readonly service: string;
}

/** AWS Signature Version 4. Returns all headers. */
export function signedHeaders(
  { headers, body, region, service }: UnsignedRequest,
  { accessKeyId, secretAccessKey, sessionToken }: SigningCredentials,
  nowMs: number,
): Record<string, string> {
  const { createHash, createHmac } = process.getBuiltinModule("node:crypto");
  const hash = (text: string | Uint8Array) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) =>
    createHmac("sha256", key).update(text).digest();

  const at = `${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
  const day = at.slice(0, 8);
  const signed: Record<string, string> = { ...headers, "x-amz-date": at };
  if (sessionToken !== undefined) signed["x-amz-security-token"] = sessionToken;
  const names = Object.keys(signed).sort();
  const list = names.join(";");
  const canonical = [
    "POST",
    "/",
    "",
    ...names.map((name) => `${name}:${signed[name]}`),
    "",
    list,
    hash(body),
  ].join("\n");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const key = [region, service, "aws4_request"].reduce(hmac, hmac(`AWS4${secretAccessKey}`, day));
  const signature = hmac(key, `AWS4-HMAC-SHA256\n${at}\n${scope}\n${hash(canonical)}`).toString(
    "hex",
  );
  signed["authorization"] =
    `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${list}, Signature=${signature}`;
  return signed;
}
