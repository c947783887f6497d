import dns from "node:dns";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type DnsAnswer,
  type DnsQuestion,
  startDnsServer,
} from "../../../test/support/dns-server.ts";
import { createNameLookups, type NameLookupOptions } from "./name-lookup.ts";

const never = new AbortController().signal;
const four = (address: string) => ({ address, family: 4 });
const six = (address: string) => ({ address, family: 6 });

/** Look-ups that ask a server of this test. */
async function lookupsOf(
  answer: (question: DnsQuestion) => DnsAnswer | undefined | Promise<DnsAnswer | undefined>,
  options: NameLookupOptions = {},
) {
  const server = await startDnsServer(answer);
  onTestFinished(() => server.close());
  return {
    server,
    lookups: createNameLookups({ servers: [server.address], hostsFile: "/nowhere", ...options }),
  };
}

async function codeOf(looking: Promise<unknown>): Promise<unknown> {
  return looking.then(
    () => "found",
    (error: NodeJS.ErrnoException) => error.code,
  );
}

describe("the answer of a name server", () => {
  test.each<[string, Record<"A" | "AAAA", DnsAnswer>, unknown]>([
    [
      "addresses of both families are given by turns, IPv4 first",
      { A: { addresses: ["192.0.2.1", "192.0.2.2"] }, AAAA: { addresses: ["2001:db8::1"] } },
      [four("192.0.2.1"), six("2001:db8::1"), four("192.0.2.2")],
    ],
    ["IPv4 alone will do", { A: { addresses: ["192.0.2.1"] }, AAAA: {} }, [four("192.0.2.1")]],
    ["IPv6 alone will do", { A: {}, AAAA: { addresses: ["2001:db8::1"] } }, [six("2001:db8::1")]],
    [
      "a failure of one family will do",
      { A: { addresses: ["192.0.2.1"] }, AAAA: { code: "refused" } },
      [four("192.0.2.1")],
    ],
    [
      "an alias is followed",
      { A: { alias: "edge.example.net", addresses: ["192.0.2.1"] }, AAAA: {} },
      [four("192.0.2.1")],
    ],
  ])("%s", async (_what, said, found) => {
    const { lookups } = await lookupsOf(({ type }) => said[type]);
    expect(await lookups("acme")("hooks.example", never)).toEqual(found);
  });

  test.each<[string, DnsAnswer, DnsAnswer, string]>([
    ["there is no such name", { code: "noSuchName" }, { code: "noSuchName" }, "ENOTFOUND"],
    ["the name has no address", {}, {}, "ENOTFOUND"],
    ["an alias leads nowhere", { alias: "gone.example" }, { alias: "gone.example" }, "ENOTFOUND"],
    ["the server fails", { code: "serverFailure" }, { code: "serverFailure" }, "ESERVFAIL"],
    [
      "the server fails for one family, and there is none of the other",
      {},
      { code: "serverFailure" },
      "ESERVFAIL",
    ],
  ])("fails with a code when %s", async (_what, A, AAAA, code) => {
    const { lookups } = await lookupsOf(({ type }) => (type === "A" ? A : AAAA));
    expect(await codeOf(lookups("acme")("hooks.example", never))).toBe(code);
  });

  test("is not asked for an invalid name", async () => {
    const { server, lookups } = await lookupsOf(() => ({}));
    expect(await codeOf(lookups("acme")(`${"a".repeat(64)}.example`, never))).toBe("EBADNAME");
    expect(server.asked).toEqual([]);
  });

  test("is requested over TCP when it exceeds a datagram, and cut to 32 addresses", async () => {
    const addresses = Array.from({ length: 200 }, (_, n) => [
      `192.0.2.${n + 1}`,
      `2001:db8::${(n + 1).toString(16)}`,
    ]).flat();
    const { server, lookups } = await lookupsOf(() => ({ addresses }));
    const found = await lookups("acme")("many.example", never);
    expect(found).toEqual(
      addresses.slice(0, 32).map((address, n) => (n % 2 === 0 ? four(address) : six(address))),
    );
    expect(new Set(server.asked.map(({ transport, type }) => `${type} over ${transport}`))).toEqual(
      new Set(["A over udp", "AAAA over udp", "A over tcp", "AAAA over tcp"]),
    );
  });

  test.each(["A", "AAAA"])(
    "for one family does not wait for the other when %s hangs",
    async (dead) => {
      const { lookups } = await lookupsOf(({ type }) =>
        type === dead ? undefined : { addresses: ["192.0.2.1", "2001:db8::1"] },
      );
      const found = dead === "A" ? six("2001:db8::1") : four("192.0.2.1");
      expect(await lookups("acme")("half.example", never)).toEqual([found]);
    },
  );

  test("is requested for the exact name: without its trailing dot, in ASCII, without search domains", async () => {
    const { server, lookups } = await lookupsOf(() => ({ addresses: ["192.0.2.1"] }));
    for (const url of ["https://hooks.example./", "https://Bücher.Example/", "https://hooks/"]) {
      await lookups("acme")(new URL(url).hostname, never);
    }
    expect(new Set(server.asked.map(({ name }) => name))).toEqual(
      new Set(["hooks.example", "xn--bcher-kva.example", "hooks"]),
    );
  });

  test("puts IPv6 first when the process prefers it", async () => {
    const order = dns.getDefaultResultOrder();
    onTestFinished(() => dns.setDefaultResultOrder(order));
    dns.setDefaultResultOrder("ipv6first");
    const { lookups } = await lookupsOf(() => ({ addresses: ["192.0.2.1", "2001:db8::1"] }));
    expect(await lookups("acme")("hooks.example", never)).toEqual([
      six("2001:db8::1"),
      four("192.0.2.1"),
    ]);
  });
});

describe("names of this machine", () => {
  test.each(["localhost", "localhost.", "app.localhost", "a.b.localhost."])(
    "%s resolves locally, without a query",
    async (name) => {
      const { server, lookups } = await lookupsOf(() => ({ addresses: ["192.0.2.1"] }));
      expect(await lookups("acme")(name, never)).toEqual([four("127.0.0.1"), six("::1")]);
      expect(server.asked).toEqual([]);
    },
  );

  test("the hosts file comes first and is read again for each look-up", async () => {
    const directory = await mkdtemp(join(tmpdir(), "hosts-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const hostsFile = join(directory, "hosts");
    const { server, lookups } = await lookupsOf(() => ({ code: "noSuchName" }), { hostsFile });
    const look = (name: string) => lookups("acme")(name, never);
    await writeFile(
      hostsFile,
      "# 192.0.2.9 own.example\r\n\r\nnonsense own.example\r\n10.0.0.1\tother Own.Example # ours\r\n",
    );
    expect(await look("own.example")).toEqual([four("10.0.0.1")]);
    await writeFile(hostsFile, "10.0.0.2 own.example\nfd00::2 own.example");
    expect(await look("own.example.")).toEqual([four("10.0.0.2"), six("fd00::2")]);
    expect(server.asked).toEqual([]);
    expect(await codeOf(look("ours"))).toBe("ENOTFOUND");
  });

  test("the machine's own hosts file and name servers are the default", async () => {
    const name = new URL("https://localhost/").hostname;
    expect(await createNameLookups()(undefined)(name, never)).toEqual([
      four("127.0.0.1"),
      six("::1"),
    ]);
    // Whether these are there or not: the name is not, and nobody waits for them longer than this.
    await expect(
      createNameLookups()(undefined)("hooks.invalid", AbortSignal.timeout(200)),
    ).rejects.toThrow();
  });
});

describe("an unresponsive zone", () => {
  /** Names below `dead.example` are never answered, or when a test lets them. */
  const isDead = (name: string) => name.endsWith("dead.example");

  test("is given up when the signal aborts, with its reason", async () => {
    const { server, lookups } = await lookupsOf(() => undefined);
    const ending = new AbortController();
    const looking = lookups("acme")("dead.example", ending.signal);
    await expect.poll(() => server.pending()).toHaveLength(1);
    ending.abort(new Error("time is over"));
    await expect(looking).rejects.toThrow("time is over");
  });

  test("affects one tenant only, and no other look-up of the process", async () => {
    const { server, lookups } = await lookupsOf(({ name }) =>
      isDead(name) ? undefined : { addresses: ["192.0.2.1"] },
    );
    const receiver = createServer((_, response) => response.end("received")).listen(0, "127.0.0.1");
    onTestFinished(() => void receiver.close());
    const ending = new AbortController();
    let ended = 0;
    const stuck = Array.from({ length: 20 }, (_, n) =>
      lookups("acme")(`hook-${n}.dead.example`, ending.signal).finally(() => (ended += 1)),
    );
    const left = Promise.allSettled(stuck);
    await expect.poll(() => server.pending()).toHaveLength(4);

    expect(await lookups("zenith")("hooks.example", never)).toEqual([four("192.0.2.1")]);
    expect(await lookups(undefined)("hooks.example", never)).toEqual([four("192.0.2.1")]);
    expect((await dns.promises.lookup("localhost")).address).toMatch(/^(127\.0\.0\.1|::1)$/);
    const { port } = receiver.address() as AddressInfo; // safe: it listens on a port
    expect(
      await (await fetch(`http://localhost:${port}/`, { headers: { connection: "close" } })).text(),
    ).toBe("received");

    expect(ended).toBe(0);
    expect(server.pending()).toHaveLength(4);
    ending.abort(new Error("time is over"));
    for (const outcome of await left)
      expect(outcome).toMatchObject({ reason: new Error("time is over") });
    // The tenant is no worse off for it.
    expect(await lookups("acme")("hooks.example", never)).toEqual([four("192.0.2.1")]);
  });

  test("that recovers is found, and the tenant's waiting names are looked up then", async () => {
    const back = Promise.withResolvers<DnsAnswer>();
    const { server, lookups } = await lookupsOf(({ name }) =>
      isDead(name) ? back.promise : { addresses: ["192.0.2.1"] },
    );
    const looking = Array.from({ length: 4 }, (_, n) =>
      lookups("acme")(`hook-${n}.dead.example`, never),
    );
    await expect.poll(() => server.pending()).toHaveLength(4);
    const behind = lookups("acme")("hooks.example", never);
    expect(await lookups("zenith")("hooks.example", never)).toEqual([four("192.0.2.1")]);
    back.resolve({ addresses: ["192.0.2.7"] });
    for (const found of await Promise.all(looking)) expect(found).toEqual([four("192.0.2.7")]);
    expect(await behind).toEqual([four("192.0.2.1")]);
  });

  test("keeps the tenant's other look-ups when one is cancelled", async () => {
    const back = Promise.withResolvers<DnsAnswer>();
    const { server, lookups } = await lookupsOf(() => back.promise);
    const ending = new AbortController();
    const one = lookups("acme")("one.example", ending.signal);
    const other = lookups("acme")("other.example", never);
    await expect.poll(() => server.pending()).toHaveLength(2);
    ending.abort(new Error("time is over"));
    await expect(one).rejects.toThrow("time is over");
    back.resolve({ addresses: ["192.0.2.7"] });
    expect(await other).toEqual([four("192.0.2.7")]);
  });
});
