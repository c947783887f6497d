import type { KeptStream } from "../../parts/messages/kept-events.ts";
import { separator, tenantPrefix } from "../../parts/wall/tenant-prefix.ts";

export function dayPartition({ tenantId, type }: KeptStream, day: string): string {
  return `${prefixOf(tenantId)}event/${type}/${day}`;
}

export function daysPartition({ tenantId, type }: KeptStream): string {
  return `${prefixOf(tenantId)}days/${type}`;
}

/** Rows without a tenant start with the separator, which no encoded tenant contains. */
export function prefixOf(tenantId: string | undefined): string {
  return tenantId === undefined ? separator : tenantPrefix(tenantId);
}

/** Expiry in epoch seconds; `undefined` for data kept forever. */
export function expiry(fromMs: number, days: number): number | undefined {
  return days === Number.POSITIVE_INFINITY ? undefined : Math.ceil(fromMs / 1_000) + days * 86_400;
}
