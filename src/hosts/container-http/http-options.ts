import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { BootError, type BootProblem } from "../../base/errors/boot.ts";

/** Times and sizes of the container's HTTP server. */
export interface HttpServerOptions {
  /** How long an idle connection stays open. Keep it longer than the load balancer's idle timeout. Default 65,000. */
  readonly keepAliveTimeoutMs?: number;
  /** How long a request's headers may take to arrive. Default 10,000, or `requestTimeoutMs` if that is less. */
  readonly headersTimeoutMs?: number;
  /** How long a whole request may take to arrive. Default 60,000. */
  readonly requestTimeoutMs?: number;
  /**
   * How long a client may read nothing of a waiting response before its connection, or its HTTP/2 stream, is closed.
   * Any progress restarts the time, so slow readers go on. Default 30,000.
   */
  readonly writeTimeoutMs?: number;
  /** The largest request head in bytes. Default 16,384. */
  readonly maxHeaderBytes?: number;
  /** How many connections may be open; further ones are closed at once. Default 10,000. */
  readonly maxConnections?: number;
  /** Takes over connections that ask for an upgrade, such as WebSockets. Default none: they are plain requests. */
  readonly upgrade?: UpgradeHandler;
  /** Serves HTTPS over HTTP/2 and HTTP/1.1. Default: unencrypted HTTP/1.1, for use behind a load balancer. */
  readonly tls?: TlsOptions;
}

/** Key and certificate of an HTTPS server. They are read once: a renewed certificate needs a restart. */
export interface TlsOptions {
  /** The private key, as PEM. */
  readonly key: string | Buffer;
  /** The certificate with its intermediates, as PEM. */
  readonly cert: string | Buffer;
  /** Decrypts `key`. */
  readonly passphrase?: string;
  /** Default `TLSv1.2`. */
  readonly minVersion?: "TLSv1.2" | "TLSv1.3";
}

/**
 * Takes over a connection; `head` has the first bytes after the request. From then on the handler authenticates, answers
 * and ends it. `draining` aborts when the process is told to stop; connections still open at the end of the drain are cut
 * off. If the handler throws, the connection is destroyed.
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

/** What the server is made with. */
export type HttpSettings = ReturnType<typeof httpSettings>;

/** The options, and the defaults of those that are not given. */
export function httpSettings(options: HttpServerOptions) {
  const { requestTimeoutMs = 60_000 } = options;
  return {
    keepAliveTimeoutMs: options.keepAliveTimeoutMs ?? 65_000,
    headersTimeoutMs: options.headersTimeoutMs ?? Math.min(10_000, requestTimeoutMs),
    requestTimeoutMs,
    writeTimeoutMs: options.writeTimeoutMs ?? 30_000,
    maxHeaderBytes: options.maxHeaderBytes ?? 16_384,
    maxConnections: options.maxConnections ?? 10_000,
    upgrade: options.upgrade,
    tls: options.tls,
  };
}

/**
 * Checks the options of a container, all of them before anything is opened.
 *
 * @throws BootError naming everything that is wrong.
 */
export function checkHttpOptions(options: HttpServerOptions): void {
  const problems: BootProblem[] = [];
  const add = (key: string, rule: string, message: string, fix: string) =>
    problems.push({ feature: "", key: `runContainer: ${key}`, rule, message, fix });
  const check = (prefix: string, given: object, known: Readonly<Record<string, Wanted>>) => {
    for (const [name, value] of Object.entries(given)) {
      const wanted = Object.hasOwn(known, name) ? known[name] : undefined;
      const key = `${prefix}${name.slice(0, 100)}`;
      if (wanted === undefined) {
        add(
          key,
          "unknown-option",
          "there is no such option",
          `known are ${Object.keys(known).join(", ")}`,
        );
      } else if (value !== undefined && !wanted.allows(value)) {
        add(
          key,
          "option-type",
          `${wanted.isSecret ? typeName(value) : shown(value)} is not allowed`,
          `use ${wanted.text}`,
        );
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
  if (problems.length > 0) throw new BootError(problems);
}

/** What an option may be. */
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
  upgrade: { allows: (value) => typeof value === "function", text: "a function" },
  tls: {
    allows: (value) => typeof value === "object" && value !== null,
    text: "an object with key and cert",
  },
};

const isText = (value: unknown) => typeof value === "string" || value instanceof Uint8Array;
const knownTlsOptions: Readonly<Record<string, Wanted>> = {
  key: { allows: isText, text: "a private key as PEM", isSecret: true },
  cert: { allows: isText, text: "a certificate as PEM" },
  passphrase: { allows: (value) => typeof value === "string", text: "a text", isSecret: true },
  minVersion: {
    allows: (value) => value === "TLSv1.2" || value === "TLSv1.3",
    text: "a version, TLSv1.2 or TLSv1.3",
  },
};

/** Why key and certificate cannot be used together; `undefined` where they can. */
function certificateProblem({ key, cert, ...rest }: TlsOptions): string | undefined {
  if (key === undefined || cert === undefined) return "key or cert is not there";
  try {
    process.getBuiltinModule("node:tls").createSecureContext({ key, cert, ...rest });
    return undefined;
  } catch (error) {
    return (error as Error).message; // safe: it is an error of OpenSSL, which does not quote what it reads
  }
}

function shown(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : typeName(value);
}

function typeName(value: unknown): string {
  return `a value of type ${value === null ? "null" : typeof value}`;
}
