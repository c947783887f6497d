import type { KeptStream } from "../../parts/messages/kept-events.ts";
import { separator, tenantPrefix } from "../../parts/wall/tenant-prefix.ts";

export function dayPartition({ tenantId, type }: KeptStream, day: string): string {
  return `${prefixOf(tenantId)}event/${type}/${day}`;
}

/** Returns the partition that lists the days with events. */
export function daysPartition({ tenantId, type }: KeptStream): string {
  return `${prefixOf(tenantId)}days/${type}`;
}

/**
 * Returns the prefix of a tenant's rows. Rows without a tenant start with the separator, which no
 * encoded tenant contains.
 */
export function prefixOf(tenantId: string | undefined): string {
  return tenantId === undefined ? separator : tenantPrefix(tenantId);
}

/**
 * Returns the expiry of data kept from a given time, in seconds since the epoch; `undefined` for
 * data kept forever.
 */
export function expiry(fromMs: number, days: number): number | undefined {
  return days === Number.POSITIVE_INFINITY ? undefined : Math.ceil(fromMs / 1_000) + days * 86_400;
}
