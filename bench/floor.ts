import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes a function as `app.mjs` that does nothing: what the process and Lambda's runtime take. */
export function writeEmpty(outdir: string): void {
  write(
    outdir,
    "export const handler = async () => ({ statusCode: 200, body: JSON.stringify({ id: 'f1', maxMb: 77 }) });\n",
  );
}

/** Writes one that signs a GetItem by hand, and does nothing else: nobody who reads DynamoDB is faster. */
export function writeFloor(outdir: string): void {
  write(
    outdir,
    `const { createHash, createHmac } = process.getBuiltinModule("node:crypto");
const { AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = process.env;
const url = new URL(AWS_ENDPOINT_URL);
const { request } = process.getBuiltinModule(url.protocol === "https:" ? "node:https" : "node:http");
const hash = (text) => createHash("sha256").update(text).digest("hex");
const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
export const handler = async ({ pathParameters: { id } }) => {
  const body = JSON.stringify({ TableName: "keelson-parameters", Key: { id: { S: "max-upload-size-mb" } } });
  const at = new Date().toISOString().replaceAll(/[-:]|\\.\\d+/g, "");
  const headers = { host: url.host, "x-amz-date": at, "x-amz-target": "DynamoDB_20120810.GetItem" };
  const list = Object.keys(headers).join(";");
  const lines = Object.entries(headers).map(([name, value]) => name + ":" + value);
  const canonical = ["POST", "/", "", ...lines, "", list, hash(body)].join("\\n");
  const scope = [at.slice(0, 8), AWS_REGION, "dynamodb", "aws4_request"];
  const key = scope.reduce(hmac, "AWS4" + AWS_SECRET_ACCESS_KEY);
  const signature = hmac(key, ["AWS4-HMAC-SHA256", at, scope.join("/"), hash(canonical)].join("\\n")).toString("hex");
  const authorization = \`AWS4-HMAC-SHA256 Credential=\${AWS_ACCESS_KEY_ID}/\${scope.join("/")}, SignedHeaders=\${list}, Signature=\${signature}\`;
  const answer = await new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers: { ...headers, authorization, "content-type": "application/x-amz-json-1.0" } });
    sent.on("error", reject).on("response", async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      resolve(text);
    });
    sent.end(body);
  });
  return { statusCode: 200, body: JSON.stringify({ id, maxMb: Number(JSON.parse(answer).Item.value.N) }) };
};
`,
  );
}

function write(outdir: string, text: string): void {
  mkdirSync(outdir, { recursive: true });
  writeFileSync(join(outdir, "app.mjs"), text);
}
