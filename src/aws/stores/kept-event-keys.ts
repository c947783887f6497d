import type { KeptStream } from "../../parts/messages/kept-events.ts";
import { separator, tenantPrefix } from "../../parts/wall/tenant-prefix.ts";

/** The partition of a day's events. */
export function dayPartition({ tenantId, type }: KeptStream, day: string): string {
  return `${prefixOf(tenantId)}event/${type}/${day}`;
}

/** The partition that lists the days with events. */
export function daysPartition({ tenantId, type }: KeptStream): string {
  return `${prefixOf(tenantId)}days/${type}`;
}

/** What the rows of a tenant begin with. What belongs to no tenant begins as no tenant does. */
export function prefixOf(tenantId: string | undefined): string {
  return tenantId === undefined ? separator : tenantPrefix(tenantId);
}

/** When what is kept from a time on expires, in seconds since the epoch; `undefined` for what is kept for ever. */
export function expiry(fromMs: number, days: number): number | undefined {
  return days === Number.POSITIVE_INFINITY ? undefined : Math.ceil(fromMs / 1_000) + days * 86_400;
}
