/** A value as DynamoDB sends it: one member, whose name is its type. */
export type AttributeValue = Readonly<Record<string, unknown>>;

/**
 * Reads an item as DynamoDB sends it; what comes out is what the SDK's `unmarshall` makes of it.
 *
 * @throws Error for what is no item.
 */
export function readItem(item: Readonly<Record<string, AttributeValue>>): Record<string, unknown> {
  // Each of them its own: a member called `__proto__` would be one of all objects.
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, readValue(value)]));
}

function readValue(value: AttributeValue): unknown {
  for (const [type, given] of Object.entries(value)) {
    const read = readers[type];
    if (read !== undefined) return read(given as never); // safe: what is not of its form throws
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

/** A whole number that a `number` does not hold exactly is a bigint. */
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
