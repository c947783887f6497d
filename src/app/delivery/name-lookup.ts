import type { LookupAddress } from "node:dns";
import { systemCode } from "../../base/errors/errors.ts";

/** Concurrent lookups of a tenant. Others wait. */
const mostOfTenant = 4;
/** Timeout of the first attempt of a DNS query, in milliseconds, and number of attempts. */
const [attemptMs, attempts] = [1_000, 3];
/** Wait for the other address family once one family has responded, in milliseconds. */
const otherFamilyMs = 250;
const mostOfFamily = 16;

const loopback: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** Resolves to at least one address. Ends when the signal aborts. */
export type NameLookup = (
  hostname: string,
  signal: AbortSignal,
) => Promise<readonly LookupAddress[]>;

export interface NameLookupOptions {
  /** IP addresses of DNS servers, with a port if not 53. Default: the machine's. */
  readonly servers?: readonly string[] | undefined;
  readonly hostsFile?: string;
}

/**
 * Looks up host names that an untrusted party chose, limited per tenant. `dns.lookup` cannot be
 * canceled, and shares four threads per process, which names of an unresponsive zone block until
 * the machine's resolver times out. These lookups use a socket instead, and end with their signal.
 * Local names come from the hosts file and `localhost` (RFC 6761), not from search domains or mDNS.
 */
export function createNameLookups({
  servers,
  hostsFile = machineHostsFile(),
}: NameLookupOptions = {}): (tenant: string | undefined) => NameLookup {
  const limited = createKeyedLimiter(mostOfTenant);
  return (tenant = "") =>
    async (hostname, signal) => {
      const name = hostname.replace(/\.$/, "");
      if (name === "localhost" || name.endsWith(".localhost")) return loopback;
      const own = await hostsAddresses(hostsFile, name);
      return own.length > 0
        ? own
        : limited(tenant, signal, () => askServers(servers, name, signal));
    };
}

function machineHostsFile(): string {
  /* v8 ignore next -- tests run on one platform */
  return process.platform === "win32"
    ? String.raw`C:\Windows\System32\drivers\etc\hosts`
    : "/etc/hosts";
}

/** Reads the file on each lookup, like the machine: running containers receive new lines. */
async function hostsAddresses(path: string, name: string): Promise<LookupAddress[]> {
  const text = await process
    .getBuiltinModule("node:fs/promises")
    .readFile(path, "utf8")
    .catch(() => "");
  const { isIP } = process.getBuiltinModule("node:net");
  return text.split("\n").flatMap((line) => {
    const [address, ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    const family = isIP(String(address));
    return family !== 0 && names.some((own) => own.toLowerCase() === name)
      ? [{ address: String(address), family }]
      : [];
  });
}

/** Uses a new resolver, because `cancel` ends all queries of a resolver. */
async function askServers(
  servers: readonly string[] | undefined,
  name: string,
  signal: AbortSignal,
): Promise<readonly LookupAddress[]> {
  const dns = process.getBuiltinModule("node:dns");
  const resolver = new dns.promises.Resolver({ timeout: attemptMs, tries: attempts });
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  let timer: NodeJS.Timeout | undefined;
  try {
    const asked = [resolver.resolve4(name), resolver.resolve6(name)] as const;
    const both = Promise.allSettled(asked);
    const timeout = () =>
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, otherFamilyMs);
      });
    // If neither family has addresses, both queries have settled.
    await Promise.any(asked).then(
      () => Promise.race([both, timeout()]),
      () => undefined,
    );
    cancel();
    const [four, six] = await both;
    signal.throwIfAborted();
    const families = [addressesIn(four, 4), addressesIn(six, 6)];
    if (dns.getDefaultResultOrder() === "ipv6first") families.reverse();
    const found = alternating(families);
    if (found.length === 0) throw failureIn([four, six]);
    return found;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  }
}

function addressesIn(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  if (answer.status === "rejected") return [];
  return answer.value.slice(0, mostOfFamily).map((address) => ({ address, family }));
}

function alternating([one = [], other = []]: LookupAddress[][]): LookupAddress[] {
  return Array.from({ length: mostOfFamily }, (_, index) => [one[index], other[index]])
    .flat()
    .filter((address) => address !== undefined);
}

/** The most specific failure, or else `ENOTFOUND`, like `dns.lookup`. */
function failureIn(answers: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons: unknown[] = answers.flatMap((answer) =>
    answer.status === "rejected" ? [answer.reason] : [],
  );
  const isNothing = (reason: unknown) => /^ENO(TFOUND|DATA)$/.test(String(systemCode(reason)));
  const nothing = Object.assign(new Error("the name has no address", { cause: reasons[0] }), {
    code: "ENOTFOUND",
  });
  return reasons.find((reason) => !isNothing(reason)) ?? nothing;
}

/**
 * Runs up to `most` calls per key at a time, in order of arrival. Rejects if the signal aborts
 * while a call waits.
 */
export function createKeyedLimiter(most: number) {
  const lanes = new Map<string, { running: number; readonly waiting: Set<() => void> }>();
  return async <Result>(key: string, signal: AbortSignal, run: () => Promise<Result>) => {
    signal.throwIfAborted();
    const lane = lanes.get(key) ?? { running: 0, waiting: new Set() };
    lanes.set(key, lane);
    if (lane.running < most) lane.running += 1;
    else await slot(lane.waiting, signal);
    try {
      // The signal may have aborted while the slot was handed over.
      signal.throwIfAborted();
      return await run();
    } finally {
      const [next] = lane.waiting;
      if (next !== undefined) next();
      else if (--lane.running === 0) lanes.delete(key);
    }
  };
}

function slot(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      waiting.delete(begin);
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      waiting.delete(begin);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    waiting.add(begin);
  });
}
