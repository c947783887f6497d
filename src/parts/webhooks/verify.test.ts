import { sign as signAsGithub, verify as verifyAsGithub } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, test } from "vitest";
import { github, hmac, slack, standardWebhooks, stripe } from "./presets.ts";
import type { WebhookScheme } from "./scheme.ts";
import { signedHeaders } from "./signed-headers.ts";
import { readSignature, verifySignature } from "./verify.ts";

const nowMs = 1_700_000_000_000;
const now = nowMs / 1_000;
const body = '{"id":"evt_1","text":"ü","at":1.0}';
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const presets: readonly (readonly [string, WebhookScheme])[] = [
  ["stripe", stripe({ secret })],
  ["standardWebhooks", standardWebhooks({ secret })],
  ["github", github({ secret })],
  ["slack", slack({ secret })],
  ["hmac", hmac({ secret, header: "X-Signature" })],
  ["hmac in Base64", hmac({ secret, header: "X-Sign", prefix: "v1:", encoding: "base64" })],
];

function verdictOf(
  scheme: WebhookScheme,
  headers: Readonly<Record<string, string>>,
  given: {
    readonly text?: string;
    readonly secrets?: readonly (string | undefined)[];
    readonly nowMs?: number;
  } = {},
) {
  const { text = body, secrets = [secret] } = given;
  const signature = readSignature(scheme, headers, given.nowMs ?? nowMs);
  if (signature.kind === "refused") return signature;
  return verifySignature(scheme, signature, new TextEncoder().encode(text), secrets);
}

const valid = (id?: string) => ({ kind: "valid", id });
const refused = (reason: string) => ({ kind: "refused", reason });

describe("what a provider's own library signs is verified, and it verifies what keelson signs", () => {
  test("Stripe", async () => {
    const { webhooks } = new Stripe("sk_test_1");
    const given = { payload: body, secret, timestamp: now };
    const header = webhooks.generateTestHeaderString(given);
    expect(verdictOf(stripe({ secret }), { "stripe-signature": header })).toEqual(valid());
    const headers = await signedHeaders(stripe({ secret }), body);
    const event = webhooks.constructEvent(body, headers["stripe-signature"] ?? "", secret);
    expect(event).toMatchObject({ id: "evt_1" });
  });

  test("Standard Webhooks, and Svix with its names of the headers", async () => {
    const library = new Webhook(secret);
    const signature = library.sign("msg_1", new Date(nowMs), body);
    const headersOf = (family: string) => ({
      [`${family}-id`]: "msg_1",
      [`${family}-timestamp`]: String(now),
      [`${family}-signature`]: signature,
    });
    const scheme = standardWebhooks({ secret });
    expect(verdictOf(scheme, headersOf("webhook"))).toEqual(valid("msg_1"));
    expect(verdictOf(scheme, headersOf("svix"))).toEqual(valid("msg_1"));
    const headers = await signedHeaders(scheme, body, { id: "msg_2" });
    expect(headers["webhook-id"]).toBe("msg_2");
    expect(library.verify(body, headers)).toMatchObject({ id: "evt_1" });
  });

  test("GitHub", async () => {
    const scheme = github({ secret });
    const header = await signAsGithub(secret, body);
    expect(verdictOf(scheme, { "x-hub-signature-256": header })).toEqual(valid());
    const headers = await signedHeaders(scheme, new TextEncoder().encode(body));
    expect(await verifyAsGithub(secret, body, headers["x-hub-signature-256"] ?? "")).toBe(true);
  });

  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  test("Slack's published example", async () => {
    const slackSecret = "8f742231b10e8888abcd99yyyzzz85a5";
    const text =
      "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const headers = {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    };
    const scheme = slack({ secret: slackSecret });
    const given = { text, secrets: [slackSecret], nowMs: 1_531_420_618_000 };
    expect(verdictOf(scheme, headers, given)).toEqual(valid());
    const timestampSeconds = 1_531_420_618;
    expect(await signedHeaders(scheme, text, { timestampSeconds })).toEqual(headers);
  });
});

describe.each(presets)("%s", (_name, scheme) => {
  const signed = () => signedHeaders(scheme, body, { id: "msg_1", timestampSeconds: now });

  test("refuses another body, another secret and no signature", async () => {
    const headers = await signed();
    expect(verdictOf(scheme, headers)).toMatchObject({ kind: "valid" });
    expect(verdictOf(scheme, headers, { text: `${body} ` })).toEqual(refused("wrong_signature"));
    const others = { secrets: ["another"] };
    expect(verdictOf(scheme, headers, others)).toEqual(refused("wrong_signature"));
    expect(verdictOf(scheme, {})).toEqual(refused("no_signature"));
  });

  test("verifies with each secret of a rotation, and with none that is empty", async () => {
    const headers = await signed();
    const rotated = { secrets: ["new", secret] };
    expect(verdictOf(scheme, headers, rotated)).toMatchObject({ kind: "valid" });
    const empty = { secrets: ["", undefined] };
    expect(verdictOf(scheme, headers, empty)).toEqual(refused("no_secret"));
  });

  test("refuses a signature that is none, and a header without bounds", async () => {
    const headers = await signed();
    const [name = ""] = Object.keys(headers).slice(-1);
    const changed = (change: (value: string) => string) =>
      verdictOf(scheme, { ...headers, [name]: change(String(headers[name])) });
    expect(changed((value) => value.slice(0, -3))).toEqual(refused("malformed_signature"));
    expect(changed((value) => value + "a".repeat(5_000))).toEqual(refused("malformed_signature"));
    expect(changed(() => "t=1,none").kind).toBe("refused");
  });
});

const isTimed = ([, { name }]: (typeof presets)[number]) =>
  ["stripe", "standardWebhooks", "slack"].includes(name);

test.each(presets.filter(isTimed))(
  "%s refuses a time of more than 300 seconds ago or ahead",
  async (_name, scheme) => {
    const at = async (timestampSeconds: number) =>
      verdictOf(scheme, await signedHeaders(scheme, body, { timestampSeconds }));
    expect(await at(now - 300)).toMatchObject({ kind: "valid" });
    expect(await at(now + 300)).toMatchObject({ kind: "valid" });
    expect(await at(now - 301)).toEqual(refused("too_old"));
    expect(await at(now + 301)).toEqual(refused("too_new"));
    expect(await at(1.5)).toEqual(refused("malformed_timestamp"));
  },
);

test.each(presets.filter((preset) => !isTimed(preset)))(
  "%s signs no time, so that an old delivery is verified",
  async (_name, scheme) => {
    const headers = await signedHeaders(scheme, body, { timestampSeconds: 1 });
    expect(verdictOf(scheme, headers)).toEqual(valid());
  },
);

test("Stripe's header may have several signatures, and one time", async () => {
  const scheme = stripe({ secret });
  const { "stripe-signature": header } = await signedHeaders(scheme, body, {
    timestampSeconds: now,
  });
  const [time, signature] = String(header).split(",");
  const wrong = `v1=${"0".repeat(64)}`;
  const verdict = (...parts: readonly unknown[]) =>
    verdictOf(scheme, { "stripe-signature": parts.join(",") });
  expect(verdict(time, wrong, signature, "v0=1")).toEqual(valid());
  expect(verdict(time, time, signature)).toEqual(refused("malformed_timestamp"));
  expect(verdict(signature)).toEqual(refused("malformed_timestamp"));
  const many = Array.from({ length: 32 }, () => "v1=0");
  expect(verdict(time, ...many)).toEqual(refused("malformed_signature"));
});

test("Standard Webhooks refuses an ID that moves the borders of what is signed", async () => {
  const scheme = standardWebhooks({ secret });
  const headers = await signedHeaders(scheme, "5.x", { id: "a", timestampSeconds: now });
  const moved = { ...headers, "webhook-id": `a.${now}`, "webhook-timestamp": "5" };
  expect(verdictOf(scheme, moved, { text: "x" })).toEqual(refused("malformed_id"));
  const withId = (id: string) => verdictOf(scheme, { ...headers, "webhook-id": id });
  expect(withId("a".repeat(257))).toEqual(refused("malformed_id"));
  expect(withId("")).toEqual(refused("malformed_id"));
  const { "webhook-id": _, ...others } = headers;
  expect(verdictOf(scheme, others)).toEqual(refused("malformed_id"));
});

test("Standard Webhooks and Slack refuse a delivery without a time", async () => {
  for (const scheme of [standardWebhooks({ secret }), slack({ secret })]) {
    const headers = await signedHeaders(scheme, body);
    const untimed = Object.entries(headers).filter(([name]) => !name.endsWith("timestamp"));
    expect(verdictOf(scheme, Object.fromEntries(untimed))).toEqual(refused("malformed_timestamp"));
  }
});

test("a list of one signature is enough for Standard Webhooks, beside those of other versions", async () => {
  const scheme = standardWebhooks({ secret });
  const headers = await signedHeaders(scheme, body, { id: "m", timestampSeconds: now });
  const signature = `v1a,x ${headers["webhook-signature"]} v1,${"A".repeat(43)}=`;
  expect(verdictOf(scheme, { ...headers, "webhook-signature": signature })).toEqual(valid("m"));
});

test("signedHeaders needs the value of a secret", async () => {
  const key = { id: "a:config:b", definition: { type: "text", scope: "system" } } as never;
  await expect(signedHeaders(stripe({ secret: key }), body)).rejects.toThrow(
    "the first secret is not a string",
  );
});

test("signed headers refuse unknown options", async () => {
  const options = { timestampSecond: 1 } as object;
  await expect(signedHeaders(stripe({ secret: "s" }), "{}", options)).rejects.toThrow(
    new TypeError(
      'signedHeaders: unknown option "timestampSecond"; did you mean `timestampSeconds`? known are id, timestampSeconds',
    ),
  );
});
