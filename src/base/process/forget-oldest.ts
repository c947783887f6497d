/**
 * Forgets the oldest entries if there are more than `limit`: a tenth together, because iterating a
 * `Map` or a `Set` passes over every entry deleted before.
 */
export function forgetOldest(
  entries: Pick<Map<string, unknown>, "size" | "keys" | "delete">,
  limit: number,
): void {
  if (entries.size <= limit) return;
  for (const oldest of entries.keys()) {
    if (entries.size <= Math.ceil(limit * 0.9)) return;
    entries.delete(oldest);
  }
}
