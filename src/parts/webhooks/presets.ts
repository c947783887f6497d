import { type RawOptions, unknownOptions } from "../../base/errors/option-table.ts";
import {
  type HmacOptions,
  schemeBrand,
  type WebhookScheme,
  type WebhookSecret,
  type WebhookSecretOptions,
} from "./scheme.ts";

/**
 * Verifies `Stripe-Signature`: the body and its time, at most 300 seconds old. Stripe signs no ID
 * outside the body, so give `id: (event) => event.id`.
 * @example
 * const verify = stripe({ secret: config.stripeSecret });
 */
export function stripe(options: WebhookSecretOptions): WebhookScheme {
  return scheme("stripe", options);
}

/**
 * Verifies webhooks that follow Standard Webhooks, and Svix's headers: the ID, the time, at most 300
 * seconds old, and the body. A secret is Base64 after `whsec_`, otherwise the string itself. The ID
 * deduplicates, and has no full stop, which would move the borders of the signed parts.
 */
export function standardWebhooks(options: WebhookSecretOptions): WebhookScheme {
  return scheme("standardWebhooks", options);
}

/**
 * Verifies `X-Hub-Signature-256`: only the body, without a time. GitHub signs neither
 * `X-GitHub-Delivery` nor `X-GitHub-Event`, so the body deduplicates, and decides what happened.
 */
export function github(options: WebhookSecretOptions): WebhookScheme {
  return scheme("github", options);
}

/**
 * Verifies `X-Slack-Signature`: the body and its time, at most 300 seconds old. Answers the
 * `url_verification` with which Slack checks an address.
 */
export function slack(options: WebhookSecretOptions): WebhookScheme {
  return scheme("slack", options);
}

/**
 * Verifies an HMAC-SHA256 of the body in a header, as Shopify, Linear and many others send it.
 * @example
 * const verify = hmac({ secret, header: "X-Shopify-Hmac-Sha256", encoding: "base64" });
 */
export function hmac(options: HmacOptions): WebhookScheme {
  return scheme("hmac", options, options);
}

const mostSecrets = 10;
const longestText = 1_024;
const secretOptions = ["secret"];
const hmacOptions = [...secretOptions, "header", "prefix", "encoding"];

/** Never throws: the start of the server reports wrong options. */
function scheme(
  name: WebhookScheme["name"],
  given: WebhookSecretOptions,
  form: Partial<HmacOptions> = {},
): WebhookScheme {
  const { header = "", prefix = "", encoding = "hex" } = Object(form) as Partial<HmacOptions>; // safe: any value has members
  const secrets = [Object(given).secret].flat() as readonly WebhookSecret[]; // safe: `problemOf` checks each
  return Object.freeze({
    [schemeBrand]: true as const,
    name,
    secrets: Object.freeze([...secrets]),
    header: String(header).toLowerCase(),
    prefix,
    encoding,
    problem:
      secretProblem(secrets) ??
      (name === "hmac"
        ? (formProblem(form) ?? unknownOption(given, hmacOptions))
        : unknownOption(given, secretOptions)),
  });
}

/** The names of options only: a value may be the secret. */
function unknownOption(given: object, known: readonly string[]): string | undefined {
  const problems: string[] = [];
  unknownOptions("", given as RawOptions, known, ({ message, fix }) => {
    problems.push(`${message}; ${fix}`);
  });
  return problems[0];
}

/** The problem never contains the secret. */
function secretProblem(secrets: readonly unknown[]): string | undefined {
  if (secrets.length < 1 || secrets.length > mostSecrets)
    return `\`secret\` is a list of ${secrets.length}; pass 1 to ${mostSecrets}`;
  return secrets.every((secret) => isText(secret) || isKey(secret))
    ? undefined
    : "`secret` is neither a string nor the handle of a `text` key of the system or a tenant";
}

function isKey(secret: unknown): boolean {
  const { id, definition } = Object(secret);
  const { type, scope } = Object(definition);
  return typeof id === "string" && type === "text" && scope !== "user";
}

function formProblem(form: Partial<HmacOptions>): string | undefined {
  const { header, prefix, encoding = "hex" } = Object(form) as Partial<HmacOptions>; // safe: any value has members
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}$/.test(String(header ?? "")))
    return "`header` is not the name of a header";
  if (prefix !== undefined && prefix !== "" && !isText(prefix)) return "`prefix` is not a string";
  return encoding === "hex" || encoding === "base64"
    ? undefined
    : "`encoding` is neither hex nor base64";
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "" && value.length <= longestText;
}
