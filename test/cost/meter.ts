// A proxy of the embedded stack that counts AWS's charges.
import { once } from "node:events";
import { createServer, type IncomingMessage, request as send } from "node:http";
import type { AddressInfo } from "node:net";

/** Quantities that AWS charges for, as the embedded stack counts them. */
export interface Bill {
  /** Calls by operation, such as `PutItem`. */
  readonly calls: Record<string, number>;
  /** DynamoDB's read and write request units. */
  readUnits: number;
  writeUnits: number;
  /** Requests to SQS in chunks of 64 KB, by kind of queue. */
  readonly queueRequests: Record<"standard" | "fair" | "fifo", number>;
  /** Events put on the bus, in chunks of 64 KB. */
  events: number;
  /** Bytes of the events and messages that were sent. */
  messageBytes: number;
}

export interface Meter {
  readonly endpoint: string;
  /** Charges since the last call. `idle` has the charges of empty polls and sweeps. */
  taken(): { readonly bill: Bill; readonly idle: Bill };
  close(): Promise<void>;
}

type Input = Readonly<Record<string, unknown>>;

const chunkBytes = 64 * 1024;

function emptyBill(): Bill {
  return {
    calls: {},
    readUnits: 0,
    writeUnits: 0,
    queueRequests: { standard: 0, fair: 0, fifo: 0 },
    events: 0,
    messageBytes: 0,
  };
}

/** Forwards each request to `endpoint`, asks DynamoDB for the units, and counts. */
export async function openMeter(endpoint: string): Promise<Meter> {
  let taken = { bill: emptyBill(), idle: emptyBill() };
  const server = createServer(async (request, response) => {
    const body = await textOf(request);
    const [, operation = ""] = String(request.headers["x-amz-target"]).split(".");
    const input = JSON.parse(body || "{}") as Input;
    const isDynamoDb = String(request.headers["x-amz-target"]).startsWith("DynamoDB");
    const asked = isDynamoDb && metered.test(operation);
    const given = asked ? JSON.stringify({ ...input, ReturnConsumedCapacity: "TOTAL" }) : body;
    const headers = { ...request.headers, "content-length": Buffer.byteLength(given) };
    const { method = "POST", url = "/" } = request;
    const forwarded = send(new URL(url, endpoint), { method, headers });
    response.once("close", () => forwarded.destroy());
    forwarded.once("error", () => response.destroy());
    forwarded.end(given);
    const [answer] = (await once(forwarded, "response").catch(() => [])) as [IncomingMessage?];
    if (answer === undefined) return;
    const answered = await textOf(answer);
    const output = JSON.parse(answered || "{}") as Input;
    const found = { operation, input, isDynamoDb, output };
    charge(isIdle(found) ? taken.idle : taken.bill, found);
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    response.end(answered);
  });
  server.keepAliveTimeout = 65_000; // as long as the stack's
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    endpoint: `http://127.0.0.1:${port}`,
    taken: () => {
      const last = taken;
      taken = { bill: emptyBill(), idle: emptyBill() };
      return last;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

const metered =
  /^(?:(?:Batch)?GetItem|Query|Scan|PutItem|UpdateItem|DeleteItem|BatchWriteItem|Transact\w+)$/;
const reading = /^(?:(?:Batch)?GetItem|Query|Scan|TransactGetItems)$/;

interface Answered {
  readonly operation: string;
  readonly input: Input;
  readonly isDynamoDb: boolean;
  readonly output: Input;
}

function charge(bill: Bill, answered: Answered): void {
  const { operation, isDynamoDb, input } = answered;
  const isCharged = isDynamoDb ? chargeUnits(bill, answered) : chargeMessages(bill, answered);
  if (!isCharged) return;
  bill.calls[operation] = (bill.calls[operation] ?? 0) + 1;
  if (!isDynamoDb) bill.messageBytes += sentBytes(operation, input);
}

/** An empty sweep or poll is part of an idle process, not of the work. */
function isIdle({ operation, input, output }: Answered): boolean {
  if (operation === "Query")
    return String(input["TableName"]).endsWith("outbox") && output["Count"] === 0;
  return operation === "ReceiveMessage" && !(output["Messages"] as readonly unknown[])?.length;
}

interface Capacity {
  readonly CapacityUnits: number;
}

function chargeUnits(bill: Bill, { operation, input, output }: Answered): boolean {
  if (!metered.test(operation)) return false;
  const { ConsumedCapacity = failedUnits(output, input) } = output as {
    readonly ConsumedCapacity?: Capacity | readonly Capacity[];
  };
  const units = [ConsumedCapacity].flat().reduce((sum, one) => sum + one.CapacityUnits, 0);
  if (reading.test(operation)) bill.readUnits += units;
  else bill.writeUnits += units;
  return true;
}

/** DynamoDB charges a failed condition for the stored item, and does not answer with the units. */
function failedUnits(
  { __type: type, Item = {} }: Input,
  { TransactItems: items = [] }: Input,
): Capacity {
  const bytes = bytesOf(Item as Readonly<Record<string, Attribute>>); // safe: an item, if asked for
  if (/ConditionalCheckFailed/.test(String(type)))
    return { CapacityUnits: Math.max(1, Math.ceil(bytes / 1_024)) };
  // safe: a transaction has items
  if (/TransactionCanceled/.test(String(type)))
    return { CapacityUnits: 2 * (items as readonly unknown[]).length };
  return { CapacityUnits: 0 };
}

type Attribute = Readonly<Record<string, unknown>>;

function bytesOf(item: Readonly<Record<string, Attribute>>): number {
  let bytes = 0;
  for (const [name, { B: binary, ...other }] of Object.entries(item))
    bytes += name.length + (binary === undefined ? textBytes(other) : decodedBytes(binary));
  return bytes;
}

/** Lists and maps count about as many bytes as their JSON has. */
function textBytes(attribute: Attribute): number {
  const [value] = Object.values(attribute);
  return Buffer.byteLength(typeof value === "string" ? value : JSON.stringify(value));
}

function decodedBytes(binary: unknown): number {
  return Buffer.byteLength(String(binary), "base64");
}

function chargeMessages(bill: Bill, { operation, input, output }: Answered): boolean {
  if (operation === "PutEvents") {
    for (const entry of input["Entries"] as readonly Input[])
      bill.events += chunksOf(entryBytes(entry));
    return true;
  }
  if (!/Message/.test(operation)) return false;
  const received = output["Messages"] as readonly Input[] | undefined;
  const bodies = received ?? [{ Body: input["MessageBody"] ?? "" }];
  const bytes = bodies.reduce((sum, { Body }) => sum + Buffer.byteLength(String(Body)), 0);
  bill.queueRequests[queueOf(input)] += chunksOf(bytes);
  return true;
}

function queueOf({ QueueUrl, MessageGroupId }: Input): keyof Bill["queueRequests"] {
  if (String(QueueUrl).endsWith(".fifo")) return "fifo";
  return MessageGroupId === undefined ? "standard" : "fair";
}

function sentBytes(operation: string, { Entries, MessageBody }: Input): number {
  if (operation === "SendMessage") return Buffer.byteLength(String(MessageBody));
  if (operation !== "PutEvents") return 0;
  return (Entries as readonly Input[]).reduce((sum, entry) => sum + entryBytes(entry), 0);
}

/** As EventBridge counts an entry: its source, its type and its detail. */
function entryBytes({ Source, DetailType, Detail }: Input): number {
  return Buffer.byteLength(`${Source}${DetailType}${Detail}`);
}

function chunksOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / chunkBytes));
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
