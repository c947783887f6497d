import ipaddr from "ipaddr.js";
import { forwardedAddress } from "../../parts/http/forwarded-address.ts";

/**
 * Returns the client's address: the `trusted`-th of `X-Forwarded-For` from the right, or the
 * connection's address without a valid one. An IPv4 address is always written as IPv4.
 */
export function clientAddress(
  connected: string | undefined,
  forwarded: string | undefined,
  trusted: number,
): string | undefined {
  const address =
    trusted > 0 && forwarded !== undefined ? forwardedAddress(forwarded, trusted) : undefined;
  if (address !== undefined) return ipaddr.process(address).toString();
  return connected?.startsWith(mapped) ? connected.slice(mapped.length) : connected;
}

/** Prefix of an IPv4 address on a dual-stack socket. */
const mapped = "::ffff:";
