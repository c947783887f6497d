/**
 * Returns the `trusted`-th address of `X-Forwarded-For` from the right, because each trusted proxy
 * has appended its client's address. `undefined` if there are fewer entries, or if the entry is not
 * an address.
 */
export function forwardedAddress(
  forwarded: string | undefined,
  trusted: number,
): string | undefined {
  const entry = forwarded?.split(",").at(-trusted)?.trim() ?? "";
  const [, bracketed, plain] = withPort.exec(entry) ?? [];
  const address = bracketed ?? plain ?? entry;
  // Not imported, because only some functions need it.
  const { isIP } = process.getBuiltinModule("node:net");
  return isIP(address) > 0 && !address.includes("%") ? address : undefined;
}

/** Some load balancers append the client's port: `192.0.2.1:443`, `[2001:db8::1]:443`. */
const withPort = /^(?:\[([\da-f:.]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/i;
