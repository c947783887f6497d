import type ipaddr from "ipaddr.js";

// ::7f00:1 and the like as the look-up of names writes them; ipaddr.js would read ::ffff:127.0.0.1, another address.
const ipv4Compatible = /^::\d+\./;

/**
 * Tells whether an IP address belongs to the public internet: unicast, and none of the ranges that are private, local,
 * reserved, or lead to an IPv4 address that they carry. Of IPv6 that is at most 2000::/3, all that IANA gives out
 * (https://www.iana.org/assignments/ipv6-address-space), since ipaddr.js takes what it does not know, such as the
 * IPv4-compatible ::7f00:1, for unicast. What is no address is not public.
 */
export function isPublicAddress(addresses: typeof ipaddr, address: string): boolean {
  if (!addresses.isValid(address) || ipv4Compatible.test(address)) return false;
  const parsed = addresses.process(address);
  if (parsed.range() !== "unicast") return false;
  return parsed instanceof addresses.IPv4 || parsed.match(addresses.IPv6.parse("2000::"), 3);
}
