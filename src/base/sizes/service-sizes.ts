/** Largest thing that a service of AWS takes. */
export interface ServiceSize {
  readonly service: string;
  readonly maxBytes: number;
}

const mib = 1_048_576;

/**
 * Sizes that AWS documents, in bytes of UTF-8. AWS writes KB and MB, and means
 * KiB and MiB.
 *
 * | size | counts | in total for a call |
 * |---|---|---|
 * | SQS, a message | body, and name, type and value of each attribute (keelson does not send any) | yes |
 * | EventBridge, an entry | `Source`, `DetailType`, `Detail`, `Resources`; 14 for a `Time` | yes |
 * | DynamoDB, the message in an item | the message; the other attributes have 16 KiB | |
 * | DynamoDB, a transaction | its items, at most 100 | yes |
 */
export const serviceSizes = Object.freeze({
  sqsMessage: { service: "SQS", maxBytes: mib },
  eventBridgeEntry: { service: "EventBridge", maxBytes: mib },
  dynamodbText: { service: "DynamoDB", maxBytes: 393_216 },
  dynamodbTransaction: { service: "DynamoDB", maxBytes: 4 * mib },
}) satisfies Readonly<Record<string, ServiceSize>>;

/**
 * Bytes of an event besides its detail: source and type, and what EventBridge adds on the way to a
 * queue, which has the same limit.
 */
export const eventWrapperBytes = 512;

/** Bytes that a job gets at most when it waits for a limit: see `parts/messages/waited.ts`. */
export const waitedBytes = 128;

/** Counts an entry of `PutEvents` as EventBridge does. */
export function entryBytes(entry: {
  readonly Source?: unknown;
  readonly DetailType?: unknown;
  readonly Detail?: unknown;
  readonly Resources?: unknown;
  readonly Time?: unknown;
}): number {
  const { Source = "", DetailType = "", Detail = "", Resources, Time } = entry;
  const texts = [Source, DetailType, Detail, ...(Array.isArray(Resources) ? Resources : [])];
  return Buffer.byteLength(texts.join("")) + (Time === undefined ? 0 : 14);
}

/**
 * Error for something too large, with its size, the limit and the service.
 *
 * @param what - such as "ctx.publish: the event file.created".
 */
export function tooLarge(
  what: string,
  bytes: number,
  { service, maxBytes }: ServiceSize,
  fix: string,
): RangeError {
  return new RangeError(`${what} has ${bytes} bytes, and ${service} takes ${maxBytes}; ${fix}`);
}
