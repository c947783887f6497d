/** The longest text, list and record, and the deepest nesting that is sent. */
const [maxText, maxMembers, maxRecord, maxDepth] = [2_000, 50, 8_000, 6];

/** Writes a record as JSON: bounded, whatever is in it. */
export function recordText(level: string, msg: string, fields: Record<string, unknown>): string {
  const head = { level, msg: msg.slice(0, maxText) };
  const text = JSON.stringify({ ...plainMembers(fields, []), ...head });
  return text.length <= maxRecord ? text : JSON.stringify({ ...head, truncated: text.length });
}

function plain(value: unknown, within: readonly unknown[]): unknown {
  if (typeof value === "string") return value.slice(0, maxText);
  if (typeof value === "bigint" || typeof value === "symbol") return String(value);
  if (typeof value !== "object" || value === null) return typeof value === "function" ? undefined : value;
  if (within.includes(value) || within.length >= maxDepth) return "[…]";
  if (value instanceof Error) {
    const { name, message, stack, cause } = value;
    return plainMembers({ name, message, stack, cause }, [...within, value]);
  }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (Array.isArray(value)) return value.slice(0, maxMembers).map((part) => plain(part, [...within, value]));
  return plainMembers(value, [...within, value]);
}

function plainMembers(source: object, within: readonly unknown[]): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const name of Object.keys(source).slice(0, maxMembers)) {
    try {
      // Safe: any object can be asked for a member by its name.
      members[name.slice(0, 100)] = plain((source as Record<string, unknown>)[name], within);
    } catch {
      members[name.slice(0, 100)] = "[unreadable]"; // a getter that throws is no reason to lose the record
    }
  }
  return members;
}
