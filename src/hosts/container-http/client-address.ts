import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * Returns the client's address: the `trusted`-th of `X-Forwarded-For` from the right, because each
 * trusted proxy has appended its client's address. Falls back to the connection's address if there
 * are fewer entries, or if the entry is not an address. An IPv4 address is always written as IPv4.
 */
export function clientAddress(
  connected: string | undefined,
  forwarded: string | undefined,
  trusted: number,
): string | undefined {
  if (trusted > 0 && forwarded !== undefined) {
    const address = withoutPort(forwarded.split(",").at(-trusted)?.trim() ?? "");
    if (isIP(address) > 0 && !address.includes("%")) return ipaddr.process(address).toString();
  }
  return connected?.startsWith(mapped) ? connected.slice(mapped.length) : connected;
}

/** Prefix of an IPv4 address on a dual-stack socket. */
const mapped = "::ffff:";

/** Some load balancers append the client's port: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function withoutPort(entry: string): string {
  const [, bracketed, plain] = withPort.exec(entry) ?? [];
  return bracketed ?? plain ?? entry;
}

const withPort = /^(?:\[([\da-f:.]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/i;
