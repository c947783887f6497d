import type ipaddr from "ipaddr.js";

// IPv4-compatible addresses such as ::7f00:1, as the DNS lookup writes them (::127.0.0.1).
// ipaddr.js would read ::ffff:127.0.0.1, which is another address.
const ipv4Compatible = /^::\d+\./;

/**
 * Checks whether an IP address is on the public internet: unicast, and not in a range that is
 * private, local or reserved, or that maps to an embedded IPv4 address. IPv6 addresses must be in
 * 2000::/3, which contains all that IANA has allocated
 * (https://www.iana.org/assignments/ipv6-address-space), because ipaddr.js classifies unknown
 * ranges, such as the IPv4-compatible ::7f00:1, as unicast. A string that is not an address is not
 * public.
 */
export function isPublicAddress(addresses: typeof ipaddr, address: string): boolean {
  if (!addresses.isValid(address) || ipv4Compatible.test(address)) return false;
  const parsed = addresses.process(address);
  if (parsed.range() !== "unicast") return false;
  return parsed instanceof addresses.IPv4 || parsed.match(addresses.IPv6.parse("2000::"), 3);
}
