import fc from "fast-check";
import { expect, test } from "vitest";
import { clientAddress } from "./client-address.ts";

const connected = "10.0.0.9";

test.each([
  ["192.0.2.1", 0, connected],
  [undefined, 1, connected],
  ["192.0.2.1", 1, "192.0.2.1"],
  ["6.6.6.6, 192.0.2.1", 1, "192.0.2.1"],
  ["6.6.6.6, 192.0.2.1", 2, "6.6.6.6"],
  ["6.6.6.6,192.0.2.1 ,\t198.51.100.7", 2, "192.0.2.1"],
  ["192.0.2.1", 2, connected],
  ["", 1, connected],
  ["192.0.2.1,", 1, connected],
  ["192.0.2.1, unknown", 1, connected],
  ["192.0.2.1, 999.1.1.1", 1, connected],
  ["192.0.2.1, 0x7f.1", 1, connected],
  ["192.0.2.1, 010.0.0.1", 1, connected],
  ["192.0.2.1, fe80::1%eth0", 1, connected],
  ["192.0.2.1, <script>", 1, connected],
  ["192.0.2.1:443", 1, "192.0.2.1"],
  ["[2001:db8::1]:443", 1, "2001:db8::1"],
  ["[2001:db8::1]", 1, "2001:db8::1"],
  ["2001:DB8:0:0::1", 1, "2001:db8::1"],
  ["::ffff:192.0.2.1", 1, "192.0.2.1"],
  ["::ffff:c000:201", 1, "192.0.2.1"],
])("of %j with %i trusted proxies, the client is %s", (forwarded, trusted, client) => {
  expect(clientAddress(connected, forwarded, trusted)).toBe(client);
});

test.each([
  ["::ffff:10.0.0.9", "10.0.0.9"],
  ["2001:db8::9", "2001:db8::9"],
  [undefined, undefined],
])("writes the address of a connection from %s as %s", (socket, client) => {
  expect(clientAddress(socket, undefined, 0)).toBe(client);
});

test("nothing that a client sends changes the address that the proxy appends", () => {
  fc.assert(
    fc.property(fc.string(), (claimed) => {
      expect(clientAddress(connected, `${claimed}, 192.0.2.1`, 1)).toBe("192.0.2.1");
    }),
  );
});
