import type ipaddr from "ipaddr.js";

// IPv4-compatible addresses such as ::7f00:1, as the DNS lookup writes them (::127.0.0.1).
// ipaddr.js would read ::ffff:127.0.0.1, another address.
const ipv4Compatible = /^::\d+\./;

/**
 * Checks for an address on the public internet: unicast, and not private, local, reserved or mapped
 * to an embedded IPv4 address. IPv6 has to be in 2000::/3, all that IANA has allocated
 * (https://www.iana.org/assignments/ipv6-address-space): ipaddr.js takes unknown ranges, such as
 * the IPv4-compatible ::7f00:1, for unicast.
 */
export function isPublicAddress(addresses: typeof ipaddr, address: string): boolean {
  if (!addresses.isValid(address) || ipv4Compatible.test(address)) return false;
  const parsed = addresses.process(address);
  if (parsed.range() !== "unicast") return false;
  return parsed instanceof addresses.IPv4 || parsed.match(addresses.IPv6.parse("2000::"), 3);
}
