import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import type { BootRule } from "../../base/errors/boot-rule.ts";
import { placed } from "../../base/errors/call-site.ts";
import { described, typeNamed } from "../../base/errors/option-table.ts";
import type { Connections } from "./connections.ts";
import type { Gate } from "./gate.ts";
import type { ByteBudget } from "./receive-body.ts";
import type { UnreadBudget } from "./unread-bytes.ts";

export const works = ["http", "workers", "schedules"] as const;

/** Work that a process of {@link runContainer} does; see its option `run`. */
export type ContainerWork = (typeof works)[number];

export function isWork(value: unknown): value is ContainerWork {
  return works.some((work) => work === value);
}

/** Timeouts and limits of the container's HTTP server. */
export interface HttpServerOptions {
  /**
   * Time for which an idle connection stays open, in milliseconds. Keep it longer than the load
   * balancer's idle timeout. Default 65,000.
   */
  readonly keepAliveTimeoutMs?: number;
  /**
   * Time limit for a request's headers to arrive, in milliseconds. Default 10,000, or
   * `requestTimeoutMs` if that is less.
   */
  readonly headersTimeoutMs?: number;
  /** Time limit for a whole request to arrive, in milliseconds. Default 60,000. */
  readonly requestTimeoutMs?: number;
  /**
   * Time after which a connection, or an HTTP/2 stream, is closed because its client does not read
   * a waiting response, in milliseconds: less than 1 KiB a second. Progress restarts the time, so slow
   * readers continue.
   * Default 30,000.
   */
  readonly writeTimeoutMs?: number;
  /**
   * Largest request head, in bytes. Over HTTP/2, a head of more than twice that size is reset without
   * a response. Default 16,384.
   */
  readonly maxHeaderBytes?: number;
  /**
   * Maximum number of open connections. Others are closed without a response, and
   * `server.connections_refused` logs their number, at most every 10 s. Default 10,000.
   */
  readonly maxConnections?: number;
  /**
   * Number of proxies in front that append their client's address to `X-Forwarded-For`.
   * `ctx.request.ip` is the address that the outermost of them appended; addresses to its left are
   * the client's own claim. See `docs/container.md#the-clients-address`. Default 0: the address of the
   * connection; on a Web Function 1.
   */
  readonly trustedProxies?: number;
  /**
   * Takes over connections that request an upgrade, such as WebSockets: a function of
   * `(request, socket, head, draining)`. Default: upgrades are
   * ignored, and the request is answered like any other.
   */
  readonly upgrade?: UpgradeHandler;
  /**
   * Key and certificate for HTTPS, over HTTP/2 and HTTP/1.1. Default: unencrypted HTTP/1.1, for use
   * behind a load balancer.
   */
  readonly tls?: TlsOptions;
}

/** Key and certificate for HTTPS, read once, so a renewed certificate needs a restart. */
export interface TlsOptions {
  /** Private key, as PEM. */
  readonly key: string | Buffer;
  /** Certificate with its intermediates, as PEM. */
  readonly cert: string | Buffer;
  /** Passphrase that decrypts `key`. */
  readonly passphrase?: string;
  /** Lowest TLS version that is accepted. Default `TLSv1.2`. */
  readonly minVersion?: "TLSv1.2" | "TLSv1.3";
}

/**
 * Takes over a connection; `head` contains the first bytes after the request. From then on, the
 * handler itself authenticates the client, answers, and ends the connection. `draining` aborts when
 * the process starts to drain; connections still open at the end of the drain are cut off. If the
 * handler throws, the connection is destroyed.
 *
 * @example
 * const sockets = new WebSocketServer({ noServer: true });
 * await runContainer(server, {
 *   upgrade: (request, socket, head, draining) =>
 *     sockets.handleUpgrade(request, socket, head, (client) => {
 *       draining.addEventListener("abort", () => client.close(1001));
 *     }),
 * });
 */
export type UpgradeHandler = (
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  draining: AbortSignal,
) => void | Promise<void>;

export interface Serving {
  readonly runtime: Runtime;
  readonly routes: Runtime["routes"];
  readonly connections: Connections;
  readonly settings: HttpSettings;
  readonly bodies: ByteBudget;
  readonly unread: UnreadBudget;
  /** `undefined` if the server listens only once it is ready. */
  readonly gate: Gate | undefined;
  /** Whether Lambda forwards the requests, each with its whole body before it reads a response. */
  readonly isWebFunction: boolean;
}

export type HttpSettings = ReturnType<typeof httpSettings>;

export function httpSettings(
  {
    keepAliveTimeoutMs = 65_000,
    requestTimeoutMs = 60_000,
    headersTimeoutMs = Math.min(10_000, requestTimeoutMs),
    writeTimeoutMs = 30_000,
    maxHeaderBytes = 16_384,
    maxConnections = 10_000,
    trustedProxies,
    upgrade,
    tls,
  }: HttpServerOptions,
  isWebFunction = false,
) {
  const timeouts = { keepAliveTimeoutMs, requestTimeoutMs, headersTimeoutMs, writeTimeoutMs };
  const proxies = trustedProxies ?? (isWebFunction ? 1 : 0);
  return { ...timeouts, maxHeaderBytes, maxConnections, trustedProxies: proxies, upgrade, tls };
}

/** @throws BootError that lists every problem. */
export function checkHttpOptions(options: HttpServerOptions): void {
  const problems: BootProblem[] = [];
  const add = (key: string, rule: BootRule, message: string, fix: string) =>
    problems.push({ feature: "", key: `runContainer: ${key}`, rule, message, fix });
  const check = (prefix: string, given: object, known: Readonly<Record<string, Wanted>>) => {
    for (const [name, value] of Object.entries(given)) {
      const wanted = Object.hasOwn(known, name) ? known[name] : undefined;
      const key = `${prefix}${name.slice(0, 100)}`;
      if (wanted === undefined) {
        const fix = `known are ${Object.keys(known).join(", ")}`;
        add(key, "unknown-option", "there is no such option", fix);
      } else if (value !== undefined && !wanted.allows(value)) {
        const given = wanted.isSecret ? typeNamed(value) : described(value);
        add(key, "option-type", `${given} is not allowed`, `use ${wanted.text}`);
      }
    }
  };
  check("", options, knownOptions);
  if (problems.length === 0 && options.tls !== undefined) {
    check("tls.", options.tls, knownTlsOptions);
    const reason = problems.length === 0 ? certificateProblem(options.tls) : undefined;
    if (reason !== undefined)
      add("tls", "certificate", reason, "use a key and its certificate, both as PEM");
  }
  const { headersTimeoutMs, requestTimeoutMs } = httpSettings(options);
  if (problems.length === 0 && headersTimeoutMs > requestTimeoutMs) {
    const message = `${headersTimeoutMs} is over requestTimeoutMs, ${requestTimeoutMs}`;
    add("headersTimeoutMs", "timeout-order", message, "lower it, or raise requestTimeoutMs");
  }
  if (problems.length > 0) throw new BootError(placed(problems));
}

interface Wanted {
  readonly allows: (value: unknown) => boolean;
  readonly text: string;
  readonly isSecret?: boolean;
}

const whole = (unit: string, min: number, max: number): Wanted => ({
  allows: (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
  text: `a whole number${unit} from ${min.toLocaleString("en")} to ${max.toLocaleString("en")}`,
});
const time = whole(" of milliseconds", 1, 3_600_000);

const knownOptions: Readonly<Record<string, Wanted>> = {
  port: whole("", 0, 65_535),
  host: {
    allows: (value) => typeof value === "string" && value !== "",
    text: "an address or a name of this machine",
  },
  keepAliveTimeoutMs: time,
  headersTimeoutMs: time,
  requestTimeoutMs: time,
  writeTimeoutMs: time,
  maxHeaderBytes: whole(" of bytes", 1_024, 1_048_576),
  maxConnections: whole("", 1, 1_000_000),
  trustedProxies: whole("", 0, 100),
  run: {
    allows: (value) => Array.isArray(value) && value.length > 0 && value.every(isWork),
    text: `a list of some of ${works.join(", ")}`,
  },
  upgrade: { allows: (value) => typeof value === "function", text: "a function" },
  tls: {
    allows: (value) => typeof value === "object" && value !== null,
    text: "an object with key and cert",
  },
};

const isPem = (value: unknown) => typeof value === "string" || value instanceof Uint8Array;
const knownTlsOptions: Readonly<Record<string, Wanted>> = {
  key: { allows: isPem, text: "a private key as PEM", isSecret: true },
  cert: { allows: isPem, text: "a certificate as PEM" },
  passphrase: { allows: (value) => typeof value === "string", text: "a text", isSecret: true },
  minVersion: {
    allows: (value) => value === "TLSv1.2" || value === "TLSv1.3",
    text: "a version, TLSv1.2 or TLSv1.3",
  },
};

function certificateProblem({ key, cert, ...rest }: TlsOptions): string | undefined {
  if (key === undefined || cert === undefined) return "key or cert is not there";
  try {
    process.getBuiltinModule("node:tls").createSecureContext({ key, cert, ...rest });
    return undefined;
  } catch (error) {
    return (error as Error).message; // safe: an OpenSSL `Error`, which does not quote its input
  }
}
