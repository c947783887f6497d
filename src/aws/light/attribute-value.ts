export type AttributeValue = Readonly<Record<string, unknown>>;

/** Reads an item with the same result as the SDK's `unmarshall`. @throws Error if it is invalid. */
export function readItem(item: Readonly<Record<string, AttributeValue>>): Record<string, unknown> {
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

/** Returns a bigint for a whole number that a `number` cannot represent. */
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
