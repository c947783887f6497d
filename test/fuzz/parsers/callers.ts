import assert from "node:assert/strict";
import fc from "fast-check";
import { SignJWT } from "jose";
import { createCallers } from "../../../src/app/callers/callers.ts";
import { isIdentifier } from "../../../src/base/identity/access.ts";
import {
  createAuthenticator,
  parseGatewayRoles,
} from "../../../src/base/identity/authenticator.ts";
import { lazy } from "../../../src/base/process/lazy.ts";
import { createApiKeys } from "../../../src/parts/api-keys/api-keys.ts";
import { generateSecret, hashOfSecret, isWellFormed } from "../../../src/parts/api-keys/secret.ts";
import { damagedJson, damagedText, damagedValue, oddText } from "../mutations.ts";
import { outcomeOf, parser, showsNone } from "../parser.ts";

const nowMs = 1_700_000_000_000;
const clock = { now: () => nowMs };
const auth = { secret: "a secret of the server, long enough" };
const tokens = createAuthenticator({ auth, clock });

/** Fixed, so that the inputs of a seed stay the same. */
const secret = generateSecret((length) => new Uint8Array(length).fill(7));
const owner = { id: "key_1", tenantId: "acme", roles: ["reader"], endsMs: undefined };
const seen = { reads: [] as string[] };
const apiKeys = createApiKeys({
  // Safe: the rest of the store is not called.
  store: async () =>
    ({
      find: async (hash: string) => {
        seen.reads.push(hash);
        return hash === hashOfSecret(secret) ? owner : undefined;
      },
      noteUse: async () => undefined,
    }) as never,
  clock,
  onLostUse: () => undefined,
});
const callers = createCallers({
  auth: { ...auth, apiKeys: true },
  tokens,
  apiKeys: lazy(async () => apiKeys),
});

const apiKey = parser({
  name: "api-key",
  reads: "API keys in `X-API-Key` and `Authorization`",
  inputs: fc.record({
    key: damagedText(fc.constant(secret)),
    scheme: damagedText(fc.constantFrom("Bearer ", "bearer  ", "Basic ")),
    isBearer: fc.boolean(),
  }),
  holds: async ({ key, scheme, isBearer }) => {
    const authorization = isBearer ? scheme + key : undefined;
    const headers: Record<string, string> = isBearer ? {} : { "x-api-key": key };
    // Space between a scheme and a key is not part of the key.
    const offered = isBearer ? key.trim() : key;
    seen.reads.length = 0;
    const request = { headers };
    const found = await callers.authenticate({ authorization, request, gatewayClaims: undefined });
    if (found.user !== undefined) {
      assert.equal(offered, secret);
      assert.equal(found.user.id, "key_1");
    } else if (offered !== secret) showsNone(found, [secret.slice(4)]);
    // A key with a wrong checksum costs no read.
    if (!isWellFormed(offered)) assert.deepEqual(seen.reads, []);
  },
});

const header = { alg: "HS256", typ: "JWT" };
const claims = { sub: "ann", tenantId: "acme", roles: ["admin"], exp: nowMs / 1_000 + 60 };
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const signed = await new SignJWT(claims).setProtectedHeader(header).sign(Buffer.from(auth.secret));
const [, , signature = ""] = signed.split(".");
/** Headers and claims that were changed after the signature. */
const forged = fc
  .tuple(
    damagedJson(fc.constant(header)),
    damagedJson(fc.constant(claims)),
    fc.constantFrom(signature, "", "AA"),
  )
  .map(([head, body, mac]) =>
    [Buffer.from(head).toString("base64url"), Buffer.from(body).toString("base64url"), mac].join(
      ".",
    ),
  );
const unsigned = `${encoded({ alg: "none" })}.${encoded(claims)}.`;

/** Node's Base64 skips unknown characters, and the last digit may have spare bits. */
const isSameSignature = (token: string) => {
  const [head, body, mac = ""] = token.split(".");
  const isSame = Buffer.from(mac, "base64url").equals(Buffer.from(signature, "base64url"));
  return isSame && signed.startsWith(`${head}.${body}.`);
};

const bearerToken = parser({
  name: "bearer-token",
  reads: "tokens in `Authorization`: their header, claims and signature",
  inputs: fc
    .oneof(damagedText(fc.constantFrom(signed, unsigned)), forged)
    .map((token) => `Bearer ${token}`),
  holds: async (authorization) => {
    const request = { headers: {} };
    const credentials = { authorization, request, gatewayClaims: undefined };
    const found = await tokens.authenticate(credentials);
    const known = await tokens.recognize(credentials);
    if (found.user === undefined) {
      assert.ok((found.problem ?? "").length < 200);
      showsNone(found, [signature, auth.secret]);
      assert.equal(known, undefined);
    } else {
      assert.ok(isSameSignature(authorization.replace(/^Bearer +/, "")), "another signature");
      assert.deepEqual(
        { ...found.user, roles: [...found.user.roles] },
        { id: "ann", tenantId: "acme", roles: ["admin"], kind: "user" },
      );
    }
  },
});

const signedClaims = parser({
  name: "token-claims",
  reads: "the claims of a token that another system has signed",
  inputs: damagedValue(fc.constant(claims)),
  holds: async (given) => {
    const isSignable = typeof given === "object" && given !== null && !Array.isArray(given);
    if (!isSignable) return;
    const payload = Buffer.from(JSON.stringify(given));
    const { CompactSign } = await import("jose");
    const token = await new CompactSign(payload)
      .setProtectedHeader(header)
      .sign(Buffer.from(auth.secret));
    const credentials = { authorization: `Bearer ${token}`, gatewayClaims: undefined };
    const found = await tokens.authenticate({ ...credentials, request: { headers: {} } });
    if (found.user === undefined) {
      assert.ok((found.problem ?? "").length < 200);
      return;
    }
    const { id, tenantId, roles } = found.user;
    assert.ok(isIdentifier(id) && isIdentifier(tenantId));
    assert.ok(roles.length <= 100 && roles.every(isIdentifier));
  },
});

const gatewayRoles = parser({
  name: "gateway-roles",
  reads: "lists of roles that an authorizer of API Gateway wrote as a string",
  inputs: fc.record({
    by: fc.constantFrom("jwt", "cognito", "lambda"),
    claim: fc.oneof(
      damagedText(
        fc.constantFrom("[admin user]", '["admin","user"]', "admin,user", "Read-only admin", "[7]"),
      ),
      damagedValue(fc.constant(["admin", "user"])),
      oddText,
    ),
  }),
  holds: async ({ by, claim }) => {
    const { value: roles } = await outcomeOf(() => parseGatewayRoles(claim, by));
    if (roles === undefined) return;
    assert.ok(roles.length <= 100 && roles.every(isIdentifier));
    assert.deepEqual(parseGatewayRoles(JSON.stringify(roles), by) ?? roles, roles);
  },
});

export const callerParsers = [apiKey, bearerToken, signedClaims, gatewayRoles];
