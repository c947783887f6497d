import assert from "node:assert/strict";
import fc from "fast-check";
import {
  github,
  hmac,
  slack,
  standardWebhooks,
  stripe,
} from "../../../src/parts/webhooks/presets.ts";
import { formatOf } from "../../../src/parts/webhooks/signatures.ts";
import { signedHeaders } from "../../../src/parts/webhooks/signed-headers.ts";
import { readSignature, verifySignature } from "../../../src/parts/webhooks/verify.ts";
import { damagedJson, damagedText } from "../mutations.ts";
import { parser, showsNone } from "../parser.ts";

const nowMs = 1_700_000_000_000;
const timestampSeconds = nowMs / 1_000;
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"id":"evt_1","type":"url_verification","challenge":"c"}';
const schemes = {
  stripe: stripe({ secret }),
  standardWebhooks: standardWebhooks({ secret }),
  github: github({ secret }),
  slack: slack({ secret }),
  hmac: hmac({ secret, header: "X-Sign", prefix: "v1:", encoding: "base64" }),
};
const names = Object.keys(schemes) as (keyof typeof schemes)[]; // safe: of this object
const sent = Object.fromEntries(
  await Promise.all(
    names.map(async (name) => [
      name,
      await signedHeaders(schemes[name], body, { id: "msg_1", timestampSeconds }),
    ]),
  ),
) as Record<keyof typeof schemes, Record<string, string>>; // safe: one for each name

const deliveries = fc.constantFrom(...names).chain((name) => {
  const headers = fc.record(
    Object.fromEntries(
      Object.entries(sent[name]).map(([header, value]) => [
        header,
        damagedText(fc.constant(value)),
      ]),
    ),
    { requiredKeys: [] },
  );
  const text = fc.oneof(
    { weight: 3, arbitrary: fc.constant(body) },
    damagedText(fc.constant(body)),
  );
  return fc.record({ name: fc.constant(name), headers, body: text });
});

const webhookSignature = parser({
  name: "webhook-signature",
  reads: "the headers of signed webhooks, of every preset",
  inputs: deliveries,
  holds: ({ name, headers, body: text }) => {
    const named = headers as Record<string, string>; // safe: one that is left out is absent
    const signature = readSignature(schemes[name], named, nowMs);
    const bytes = new TextEncoder().encode(text);
    const verdict =
      signature.kind === "refused"
        ? signature
        : verifySignature(schemes[name], signature, bytes, [secret]);
    showsNone(verdict, [secret]);
    if (verdict.kind === "refused") {
      assert.match(verdict.reason, /^[a-z_]{1,40}$/);
      return;
    }
    // Another body needs the secret. Encoding replaces lone surrogates.
    assert.equal(text.toWellFormed(), body);
    assert.equal(verdict.id, name === "standardWebhooks" ? "msg_1" : undefined);
  },
});

const greeting = parser({
  name: "webhook-greeting",
  reads: "the body with which Slack checks an address",
  inputs: damagedJson(fc.constant(JSON.parse(body))),
  holds: (text) => {
    const answer = formatOf(schemes.slack).greeting?.(new TextEncoder().encode(text));
    if (answer !== undefined) assert.ok(JSON.stringify(answer).length <= 6 * 4_096);
  },
});

export const webhookParsers = [webhookSignature, greeting];
