/**
 * Whether a value looks like an IANA name. Rejects offsets such as +02:00, which ignore daylight
 * saving time. Does not load `Intl`, which takes over 20 ms of a cold start.
 */
export function isZoneName(zone: unknown): zone is string {
  return typeof zone === "string" && /^[A-Z][A-Z0-9_+/-]{0,99}$/i.test(zone);
}

/** Returns the main name of a time zone, and `undefined` if this Node does not know it. */
export function knownZone(zone: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}
