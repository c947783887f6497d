import type { WebhookEncoding, WebhookScheme } from "./scheme.ts";
import { webhookKey } from "./standard-webhooks.ts";

/** Why a webhook was refused, for the log. The sender does not learn it. */
export type Refusal =
  | "no_secret"
  | "no_signature"
  | "malformed_signature"
  | "malformed_timestamp"
  | "malformed_id"
  | "too_old"
  | "too_new"
  | "wrong_signature"
  | "verify_returned_false"
  | "verify_threw"
  | "malformed_tenant";

export type Headers = Readonly<Record<string, string>>;

/** The signature of a delivery, as its headers have it. */
interface Claimed {
  readonly signatures: readonly string[];
  /** The signed part before the body. */
  readonly before: string;
  /** As received. Absent if the scheme signs no time. */
  readonly timestamp?: string | undefined;
  /** Absent if the scheme signs no ID. */
  readonly id?: string;
}

/** Facts that a sender puts into headers. */
export interface Sent {
  readonly id: string;
  readonly timestampSeconds: number;
}

/** Reads and writes the headers of a scheme. */
interface Format {
  readonly encoding: WebhookEncoding;
  /** Names of the headers, the signature's last. */
  readonly headers: readonly string[];
  key(secret: string): Buffer;
  read(headers: Headers): Claimed | Refusal;
  /** The signed part before the body. */
  before(sent: Sent): string;
  write(sent: Sent, signature: string): Record<string, string>;
  /**
   * Returns the answer to a request that only checks the address; `undefined` for an event. It
   * reads the bytes, because such a request is JSON even if the events are not.
   */
  greeting?(body: Uint8Array): unknown;
}

const longestHeader = 4_096;
const mostSignatures = 32;
const longestId = 256;
/** Most bytes of a request that only checks the address. */
const largestGreeting = 4_096;

const utf8 = (secret: string) => Buffer.from(secret, "utf8");
const nothing = () => "";

export function formatOf({ name, header, prefix, encoding }: WebhookScheme): Format {
  switch (name) {
    case "stripe":
      return stripeFormat;
    case "standardWebhooks":
      return standardFormat;
    case "slack":
      return slackFormat;
    case "github":
      return bodyFormat("x-hub-signature-256", "sha256=", "hex");
    case "hmac":
      return bodyFormat(header, prefix, encoding);
  }
}

/** `t=1492774577,v1=5257…,v1=…,v0=…` */
const stripeFormat: Format = {
  encoding: "hex",
  headers: ["stripe-signature"],
  key: utf8,
  read: (headers) => {
    const parts = listed(headers["stripe-signature"], ",");
    if (typeof parts === "string") return parts;
    const valuesOf = (name: string) =>
      parts.filter((part) => part.startsWith(name)).map((part) => part.slice(name.length));
    const [timestamp = "", ...others] = valuesOf("t=");
    if (others.length > 0) return "malformed_timestamp";
    return { signatures: valuesOf("v1="), before: `${timestamp}.`, timestamp };
  },
  before: ({ timestampSeconds }) => `${timestampSeconds}.`,
  write: ({ timestampSeconds }, signature) => ({
    "stripe-signature": `t=${timestampSeconds},v1=${signature}`,
  }),
};

/** `v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4= v1,…` */
const standardFormat: Format = {
  encoding: "base64",
  headers: ["webhook-id", "webhook-timestamp", "webhook-signature"],
  key: webhookKey,
  read: (headers) => {
    const family = headers["webhook-signature"] === undefined ? "svix" : "webhook";
    const parts = listed(headers[`${family}-signature`], " ");
    if (typeof parts === "string") return parts;
    const { [`${family}-id`]: id = "", [`${family}-timestamp`]: timestamp = "" } = headers;
    if (id === "" || id.length > longestId || id.includes(".")) return "malformed_id";
    const signatures = parts
      .filter((part) => part.startsWith("v1,"))
      .map((part) => part.slice("v1,".length));
    return { signatures, before: `${id}.${timestamp}.`, timestamp, id };
  },
  before: ({ id, timestampSeconds }) => `${id}.${timestampSeconds}.`,
  write: ({ id, timestampSeconds }, signature) => ({
    "webhook-id": id,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": `v1,${signature}`,
  }),
};

/** `v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503` */
const slackFormat: Format = {
  encoding: "hex",
  headers: ["x-slack-request-timestamp", "x-slack-signature"],
  key: utf8,
  read: (headers) => {
    const signatures = prefixed(headers["x-slack-signature"], "v0=");
    if (typeof signatures === "string") return signatures;
    const timestamp = headers["x-slack-request-timestamp"] ?? "";
    return { signatures, before: `v0:${timestamp}:`, timestamp };
  },
  before: ({ timestampSeconds }) => `v0:${timestampSeconds}:`,
  write: ({ timestampSeconds }, signature) => ({
    "x-slack-request-timestamp": String(timestampSeconds),
    "x-slack-signature": `v0=${signature}`,
  }),
  greeting: (body) => {
    const { type, challenge } = Object(body.byteLength > largestGreeting ? undefined : json(body));
    const isGreeting = type === "url_verification" && typeof challenge === "string";
    return isGreeting ? { challenge } : undefined;
  },
};

function json(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

function bodyFormat(header: string, prefix: string, encoding: WebhookEncoding): Format {
  return {
    encoding,
    headers: [header],
    key: utf8,
    read: (headers) => {
      const signatures = prefixed(headers[header], prefix);
      return typeof signatures === "string" ? signatures : { signatures, before: "" };
    },
    before: nothing,
    write: (_sent, signature) => ({ [header]: `${prefix}${signature}` }),
  };
}

function listed(header: string | undefined, separator: string): readonly string[] | Refusal {
  if (header === undefined) return "no_signature";
  if (header.length > longestHeader) return "malformed_signature";
  const parts = header.split(separator, mostSignatures + 1).map((part) => part.trim());
  return parts.length > mostSignatures ? "malformed_signature" : parts;
}

function prefixed(header: string | undefined, prefix: string): readonly string[] | Refusal {
  if (header === undefined) return "no_signature";
  return header.length <= longestHeader && header.startsWith(prefix)
    ? [header.slice(prefix.length)]
    : "malformed_signature";
}
