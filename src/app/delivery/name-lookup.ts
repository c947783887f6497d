import type { LookupAddress } from "node:dns";
import { systemCode } from "../../base/errors/system-code.ts";
import { createKeyedLimiter } from "./keyed-limiter.ts";

/** How many look-ups of one tenant go on at once; more of them wait. */
const mostOfTenant = 4;
/** How long a server is waited for at first, in milliseconds, and how often it is asked. */
const [attemptMs, attempts] = [1_000, 3];
/** How long IPv6 is waited for where IPv4 has answered, in milliseconds, and the other way round. */
const otherFamilyMs = 250;
/** How many addresses of each family are taken. */
const mostOfFamily = 16;

const loopback: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** Finds the addresses of a name, at least one. What it is at ends when the signal is aborted. */
export type NameLookup = (
  hostname: string,
  signal: AbortSignal,
) => Promise<readonly LookupAddress[]>;

/** Where names are looked up. */
export interface NameLookupOptions {
  /** IP addresses, with a port where it is not 53. Default: those of the machine. */
  readonly servers?: readonly string[] | undefined;
  /** Default: that of the machine. */
  readonly hostsFile?: string;
}

/**
 * Creates look-ups of names that somebody else chose, a few at once for each tenant. `dns.lookup` would be no good: it cannot
 * be cancelled, and a process has four threads for it, which names of a dead zone hold for as long as the machine's resolver
 * is patient. These hold a socket, and end with their signal.
 *
 * Of the machine's own names they know its hosts file and `localhost` (RFC 6761), but neither search domains nor mDNS.
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

/** Read each time, as the machine does: containers get lines while they run. */
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

/** Asks for both families. A resolver for each look-up, since to cancel is to cancel all of a resolver. */
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
    // Where neither has addresses, both have settled.
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

/** In the order in which Node tries them. */
function alternating([one = [], other = []]: LookupAddress[][]): LookupAddress[] {
  return Array.from({ length: mostOfFamily }, (_, index) => [one[index], other[index]])
    .flat()
    .filter((address) => address !== undefined);
}

/** A failure that says more than that there is nothing, where there is one; `ENOTFOUND` as `dns.lookup` has it. */
function failureIn(answers: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons: unknown[] = answers.flatMap((answer) =>
    answer.status === "rejected" ? [answer.reason] : [],
  );
  const isNothing = (reason: unknown) => isNoAnswer(systemCode(reason));
  const nothing = Object.assign(new Error("the name has no address", { cause: reasons[0] }), {
    code: "ENOTFOUND",
  });
  return reasons.find((reason) => !isNothing(reason)) ?? nothing;
}

function isNoAnswer(code: unknown): boolean {
  return code === "ENOTFOUND" || code === "ENODATA";
}
