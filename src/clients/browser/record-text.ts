/** Limits of a record: string length, list and object size, record length, nesting depth. */
const [maxText, maxMembers, maxRecord, maxDepth] = [2_000, 50, 8_000, 6];

/** Number of values read from a record. Each takes two characters or more, the rest cannot fit. */
const maxValues = maxRecord / 2;

/** The objects that enclose a value, and the number of values that the record may still contain. */
interface Walk {
  readonly within: readonly unknown[];
  readonly budget: { left: number };
}

/** Writes a record as bounded JSON, regardless of its contents. */
export function recordText(level: string, msg: string, fields: Record<string, unknown>): string {
  const head = { level, msg: msg.slice(0, maxText) };
  const text = JSON.stringify({
    ...plainMembers(fields, { within: [], budget: { left: maxValues } }),
    ...head,
  });
  return text.length <= maxRecord ? text : JSON.stringify({ ...head, truncated: text.length });
}

function plain(value: unknown, { within, budget }: Walk): unknown {
  if (typeof value === "string") return value.slice(0, maxText);
  if (typeof value === "bigint" || typeof value === "symbol") return String(value);
  if (typeof value !== "object" || value === null)
    return typeof value === "function" ? undefined : value;
  if (within.includes(value) || within.length >= maxDepth || budget.left <= 0) return "[…]";
  const walk = { within: [...within, value], budget };
  if (value instanceof Error) {
    const { name, message, stack, cause } = value;
    return plainMembers({ name, message, stack, cause }, walk);
  }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (!Array.isArray(value)) return plainMembers(value, walk);
  const parts = value.slice(0, maxMembers);
  budget.left -= parts.length;
  return parts.map((part) => plain(part, walk));
}

function plainMembers(source: object, walk: Walk): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const name of Object.keys(source).slice(0, maxMembers)) {
    walk.budget.left -= 1;
    try {
      // Safe: any object allows reading any name.
      members[name.slice(0, 100)] = plain((source as Record<string, unknown>)[name], walk);
    } catch {
      members[name.slice(0, 100)] = "[unreadable]"; // keeps the record if a getter throws
    }
  }
  return members;
}
