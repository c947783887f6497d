const [maxText, maxMembers, maxRecord, maxDepth] = [2_000, 50, 8_000, 6];

/** Objects that enclose a value, and how many values still fit, each of two characters or more. */
interface Walk {
  readonly within: readonly unknown[];
  readonly budget: { left: number };
}

export function recordText(level: string, msg: string, fields: Record<string, unknown>): string {
  const head = { level, msg: msg.slice(0, maxText) };
  const text = JSON.stringify({
    ...plainMembers(fields, { within: [], budget: { left: maxRecord / 2 } }),
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
      // Safe: any name may be read from any object.
      members[name.slice(0, 100)] = plain((source as Record<string, unknown>)[name], walk);
    } catch {
      members[name.slice(0, 100)] = "[unreadable]"; // keeps the record if a getter throws
    }
  }
  return members;
}
