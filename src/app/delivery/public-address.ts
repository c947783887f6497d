import type ipaddr from "ipaddr.js";

// IPv4-compatible addresses such as ::7f00:1, which the DNS lookup writes as ::127.0.0.1. ipaddr.js
// would read ::ffff:127.0.0.1, a different address.
const ipv4Compatible = /^::\d+\./;

/**
 * Whether an address is on the public internet: unicast, and not private, local, reserved or mapped
 * to an embedded IPv4 address. An IPv6 address must be in 2000::/3, the only range that IANA has
 * allocated (https://www.iana.org/assignments/ipv6-address-space), because ipaddr.js treats unknown
 * ranges, such as the IPv4-compatible ::7f00:1, as unicast.
 */
export function isPublicAddress(addresses: typeof ipaddr, address: string): boolean {
  if (!addresses.isValid(address) || ipv4Compatible.test(address)) return false;
  const parsed = addresses.process(address);
  if (parsed.range() !== "unicast") return false;
  return parsed instanceof addresses.IPv4 || parsed.match(addresses.IPv6.parse("2000::"), 3);
}
