import type { IncomingMessage } from "node:http";
import type { RowAddress } from "../../parts/config/read/rows.ts";
import { type AttributeValue, readItem } from "./attribute-value.ts";
import { crc32 } from "./crc32.ts";
import type { LeanSettings } from "./lean-settings.ts";
import { signedHeaders } from "./signature.ts";

export type LeanRows = ReturnType<typeof createLeanRows>;

export function createLeanRows(
  settings: LeanSettings,
  {
    timeoutMs = 500,
    now = Date.now,
  }: { readonly timeoutMs?: number; readonly now?: () => number } = {},
) {
  const { endpoint, region, credentials } = settings;
  const http = process.getBuiltinModule(
    endpoint.protocol === "https:" ? "node:https" : "node:http",
  );
  const agent = new http.Agent({ keepAlive: true });
  let isOver = false;

  const post = (headers: Record<string, string>, body: string): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const request = http.request(endpoint, { method: "POST", agent, headers });
      const timer = setTimeout(() => request.destroy(new Error("no answer in time")), timeoutMs);
      const chunks: Buffer[] = [];
      request.on("response", (response) => {
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          clearTimeout(timer);
          const bytes = Buffer.concat(chunks);
          if (isWhole(response, bytes)) resolve(bytes);
          else reject(new Error("not a plain answer"));
        });
        response.on("error", reject);
      });
      request.on("error", (error) => {
        clearTimeout(timer);
        reject(error);
      });
      request.end(body);
    });

  return {
    /** Returns `undefined` if a response was not plain, complete and in time, and ever after. */
    read: async (
      tableName: string,
      addresses: readonly RowAddress[],
      consistent: boolean,
    ): Promise<Record<string, unknown>[] | undefined> => {
      if (isOver) return undefined;
      const Keys = addresses.map(({ partition, key }) => ({
        pk: { S: partition },
        sk: { S: key },
      }));
      const body = JSON.stringify({
        RequestItems: { [tableName]: { Keys, ConsistentRead: consistent } },
      });
      const headers = {
        ...asked,
        host: endpoint.host,
        "content-length": String(Buffer.byteLength(body)),
      };
      try {
        const signed = signedHeaders(
          { headers, body, region, service: "dynamodb" },
          credentials,
          now(),
        );
        return itemsOf(await post(signed, body), tableName);
      } catch {
        // The SDK repeats the read and reports the problem if it persists.
        isOver = true;
        return undefined;
      }
    },
    close: () => agent.destroy(),
  };
}
const asked = {
  "content-type": "application/x-amz-json-1.0",
  "x-amz-target": "DynamoDB_20120810.BatchGetItem",
};

function isWhole({ statusCode, headers }: IncomingMessage, bytes: Buffer): boolean {
  const sum = headers["x-amz-crc32"];
  return (
    statusCode === 200 &&
    headers["content-encoding"] === undefined &&
    (sum === undefined || Number(sum) === crc32(bytes))
  );
}

function itemsOf(bytes: Buffer, tableName: string): Record<string, unknown>[] {
  // Safe: any other form throws, here or in `readItem`.
  const { Responses, UnprocessedKeys } = JSON.parse(bytes.toString()) as {
    readonly Responses: Readonly<
      Record<string, readonly Readonly<Record<string, AttributeValue>>[]>
    >;
    readonly UnprocessedKeys?: object;
  };
  if (Object.keys(UnprocessedKeys ?? {}).length > 0)
    throw new Error("DynamoDB left keys unprocessed");
  return (Responses[tableName] ?? []).map(readItem);
}
