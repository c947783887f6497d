import type { IncomingMessage } from "node:http";
import type { PutItemCommandInput } from "@aws-sdk/client-dynamodb";
import type { LeanSettings } from "./lean-settings.ts";
import { signedHeaders } from "./signature.ts";

export type LeanRows = ReturnType<typeof createLeanRows>;

interface LeanAnswer {
  readonly status: number | undefined;
  readonly bytes: Buffer;
}

interface LeanCall {
  readonly operation: "BatchGetItem" | "Query";
  readonly input: object;
}

export function createLeanRows(
  settings: LeanSettings,
  { timeoutMs = 500, now = Date.now }: { timeoutMs?: number; now?: () => number } = {},
) {
  const { endpoint, region, credentials } = settings;
  const http = process.getBuiltinModule(
    endpoint.protocol === "https:" ? "node:https" : "node:http",
  );
  const agent = new http.Agent({ keepAlive: true });
  let isOver = false;

  const post = (headers: Record<string, string>, body: string): Promise<LeanAnswer> =>
    new Promise((resolve, reject) => {
      const request = http.request(endpoint, { method: "POST", agent, headers });
      // After the next look at the socket: an answer may have arrived while the process was blocked.
      const giveUp = () => setImmediate(() => request.destroy(new Error("no answer in time")));
      const timer = setTimeout(giveUp, timeoutMs);
      const chunks: Buffer[] = [];
      request.on("response", (response) => {
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          clearTimeout(timer);
          const bytes = Buffer.concat(chunks);
          if (isWhole(response, bytes)) resolve({ status: response.statusCode, bytes });
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

  const call = async <Read>(
    operation: string,
    input: object,
    read: (answer: LeanAnswer) => Read,
  ): Promise<Read | undefined> => {
    if (isOver) return undefined;
    const body = JSON.stringify(input);
    const headers = {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `DynamoDB_20120810.${operation}`,
      host: endpoint.host,
      "content-length": String(Buffer.byteLength(body)),
    };
    const request = { headers, body, region, service: "dynamodb" };
    try {
      return read(await post(signedHeaders(request, credentials, now()), body));
    } catch {
      // The SDK repeats the call and reports the problem if it persists.
      isOver = true;
      return undefined;
    }
  };

  return {
    /** Returns `undefined` once a response was not plain, complete and in time, and ever after. */
    read: (tableName: string, { operation, input }: LeanCall): Promise<Item[] | undefined> =>
      call(operation, input, (answer) => itemsOf(answer, tableName)),
    /**
     * Puts an item; returns `undefined` if the SDK has to, as `read` does.
     * @throws `ConditionalCheckFailedException`, like the SDK's.
     */
    put: async (input: PutItemCommandInput): Promise<true | undefined> => {
      const answer = await call("PutItem", { ...input, Item: sentItem(input.Item) }, putOf);
      if (answer?.refusal !== undefined) throw answer.refusal;
      return answer && true;
    },
    close: () => agent.destroy(),
  };
}

function isWhole({ headers }: IncomingMessage, bytes: Buffer): boolean {
  const sum = headers["x-amz-crc32"];
  return (
    headers["content-encoding"] === undefined && (sum === undefined || Number(sum) === crc32(bytes))
  );
}

function putOf({ status, bytes }: LeanAnswer): { readonly refusal?: Error } {
  // Safe: any other form throws.
  const { __type, Item } = JSON.parse(bytes.toString()) as {
    readonly __type: string;
    readonly Item?: Readonly<Record<string, AttributeValue>>;
  };
  if (status === 200) return {};
  const name = "ConditionalCheckFailedException";
  if (!__type.endsWith(`#${name}`)) throw new Error(__type);
  const found = Item && { Item: receivedItem(Item) };
  return {
    refusal: Object.assign(new Error("The conditional request failed"), { name, ...found }),
  };
}

/** Bytes are text in DynamoDB's JSON. An item that is put has them only at its top level. */
function sentItem(item: PutItemCommandInput["Item"]): object {
  return withBytes({ ...item }, (bytes) => Buffer.from(bytes as Uint8Array).toString("base64"));
}

function receivedItem(item: Readonly<Record<string, AttributeValue>>): object {
  return withBytes(item, readBytes as (bytes: unknown) => Uint8Array);
}

function withBytes(item: object, convert: (bytes: unknown) => unknown): object {
  return Object.fromEntries(
    Object.entries(item).map(([name, value]) => [
      name,
      "B" in value ? { B: convert(value.B) } : value,
    ]),
  );
}

function itemsOf({ status, bytes }: LeanAnswer, tableName: string): Item[] {
  if (status !== 200) throw new Error(`status ${status}`);
  // Safe: any other form throws, here or in `readItem`.
  const { Responses, Items, UnprocessedKeys, LastEvaluatedKey } = JSON.parse(bytes.toString()) as {
    readonly Responses: Readonly<Record<string, StoredItems>>;
    readonly Items?: StoredItems;
    readonly UnprocessedKeys?: object;
    readonly LastEvaluatedKey?: object;
  };
  if (Object.keys({ ...UnprocessedKeys, ...LastEvaluatedKey }).length > 0)
    throw new Error("DynamoDB left rows");
  return (Items ?? Responses[tableName] ?? []).map(readItem);
}

type StoredItems = readonly Readonly<Record<string, AttributeValue>>[];
type AttributeValue = Readonly<Record<string, unknown>>;
type Item = Record<string, unknown>;

/** Returns the same item as the SDK's `unmarshall`. @throws Error if the item is invalid. */
export function readItem(item: Readonly<Record<string, AttributeValue>>): Item {
  // `fromEntries` creates own properties, so `__proto__` cannot change the prototype.
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, readValue(value)]));
}

function readValue(value: AttributeValue): unknown {
  for (const [type, given] of Object.entries(value)) {
    const read = readers[type];
    if (read !== undefined) return read(given as never); // safe: readers throw for other forms
  }
  throw new Error(`no attribute value: ${Object.keys(value)}`);
}

const readers: Readonly<Record<string, (given: never) => unknown>> = {
  S: (text: string) => text,
  N: readNumber,
  BOOL: (truth: boolean) => truth,
  NULL: () => null,
  M: readItem,
  L: (values: readonly AttributeValue[]) => values.map(readValue),
  B: readBytes,
  SS: (texts: readonly string[]) => new Set(texts),
  NS: (numbers: readonly string[]) => new Set(numbers.map(readNumber)),
  BS: (values: readonly string[]) => new Set(values.map(readBytes)),
};

/** A bigint for a whole number that a `number` cannot represent. */
function readNumber(text: string): number | bigint {
  const number = Number(text);
  return Math.abs(number) > Number.MAX_SAFE_INTEGER && Number.isFinite(number)
    ? BigInt(text)
    : number;
}

function readBytes(text: string): Uint8Array {
  const { buffer, byteOffset, byteLength } = Buffer.from(text, "base64");
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** CRC-32 of DynamoDB's responses. Loading `node:zlib` would take 5 ms of a cold start. */
export function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  // Safe: the table has an entry for every byte.
  for (const byte of bytes) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
