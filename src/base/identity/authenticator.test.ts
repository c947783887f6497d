import { execFile } from "node:child_process";
import { createHmac, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BootError } from "../errors/boot.ts";
import { PipelineError } from "../errors/errors.ts";
import type { AuthOptions } from "./auth-options.ts";
import { createAuthenticator } from "./authenticator.ts";
import { signToken } from "./token.ts";

const secret = "a secret of thirty-two bytes and more";
const seconds = 1_700_000_000;
const clock = { now: () => seconds * 1000 };
const ann = { sub: "ann", tenantId: "acme", roles: ["admin"], exp: seconds + 60 };
const annUser = { user: { id: "ann", tenantId: "acme", roles: ["admin"], kind: "user" } };

const encode = (part: unknown) =>
  Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url");
/** Tokens are made by hand here: an attacker's library has no scruples either. */
function handmade(
  header: unknown,
  payload: unknown,
  signature: (input: string) => Buffer | string,
): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${Buffer.from(signature(input)).toString("base64url")}`;
}
const hmac =
  (key: string | Buffer, hash = "sha256") =>
  (input: string) =>
    createHmac(hash, key).update(input).digest();
const rsa = (key: KeyObject) => (input: string) => sign("sha256", Buffer.from(input), key);
const hs256 = (payload: unknown, header: object = {}) =>
  handmade({ alg: "HS256", ...header }, payload, hmac(secret));

function authenticate(
  auth: AuthOptions | undefined,
  authorization: string | undefined,
  gatewayClaims?: Record<string, unknown>,
) {
  return createAuthenticator({ auth, clock }).authenticate({
    authorization,
    gatewayClaims: byJwt(gatewayClaims),
  });
}

function byJwt(claims: Record<string, unknown> | undefined) {
  return claims === undefined ? undefined : ({ by: "jwt", claims } as const);
}

describe("with a secret", () => {
  const withToken = (token: string, auth: AuthOptions = { secret }) =>
    authenticate(auth, `Bearer ${token}`);

  test("a valid token identifies the caller", async () => {
    expect(await withToken(hs256(ann))).toEqual(annUser);
    expect(await withToken(hs256({ ...ann, nbf: seconds, iat: seconds }))).toEqual(annUser);
    expect(await withToken(hs256(ann, { kid: "any", typ: "at+jwt" }))).toEqual(annUser);
  });

  test("all secrets of a list verify, and the last one decides why a token is refused", async () => {
    const other = "another secret of thirty-two bytes";
    const old = handmade({ alg: "HS256" }, ann, hmac(other));
    for (const list of [
      [secret, other],
      [other, secret],
    ]) {
      expect(await withToken(hs256(ann), { secret: list })).toEqual(annUser);
      expect(await withToken(old, { secret: list })).toEqual(annUser);
      const expired = { ...ann, exp: seconds };
      expect(await withToken(hs256(expired), { secret: list })).toMatchObject({
        problem: "token expired",
      });
    }
    expect(await withToken(old, { secret: [secret] })).toMatchObject({
      problem: "token signature not accepted",
    });
    const unsigned = handmade({ alg: "HS256" }, ann, () => "none");
    expect(await withToken(unsigned, { secret: [secret, other] })).toMatchObject({
      problem: "token signature not accepted",
    });
    const authenticator = createAuthenticator({ auth: { secret: [other, secret] }, clock });
    const authorization = `Bearer ${hs256(ann)}`;
    expect(await authenticator.recognize({ authorization, gatewayClaims: undefined })).toEqual(
      annUser.user,
    );
  });

  test("the scheme may have any case, and several spaces after it", async () => {
    for (const scheme of ["bearer ", "BEARER ", "Bearer   "])
      expect(await authenticate({ secret }, scheme + hs256(ann))).toEqual(annUser);
  });

  test.each<[string, string]>([
    ["no token", "Bearer"],
    ["an empty token", "Bearer "],
    ["two tokens", `Bearer ${hs256(ann)} ${hs256(ann)}`],
    ["two headers joined", `Bearer ${hs256(ann)}, Bearer ${hs256(ann)}`],
    ["another scheme", "Basic YW5uOnNlY3JldA=="],
    ["no scheme", hs256(ann)],
    ["a scheme that only begins alike", `BearerX ${hs256(ann)}`],
    ["a tab behind the scheme", `Bearer\t${hs256(ann)}`],
    ["a line break at the end", `Bearer ${hs256(ann)}\n`],
    ["nothing", ""],
    ["a token of two parts", "Bearer a.b"],
    ["a token of four parts", `Bearer ${hs256(ann)}.x`],
    ["a token of five parts, encrypted", "Bearer a.b.c.d.e"],
    ["a token with an empty part", `Bearer .${hs256(ann)}`],
    ["a token without a signature", `Bearer ${encode({ alg: "none" })}.${encode(ann)}.`],
    ["characters that no token has", `Bearer ${hs256(ann)}é`],
    ["padding", `Bearer ${hs256(ann)}==`],
  ])("rejects a header with %s", async (_, header) => {
    expect(await authenticate({ secret }, header)).toEqual({
      user: undefined,
      problem: "the Authorization header is not one bearer token",
    });
  });

  test("a request without the header has no user and no problem", async () => {
    expect(await authenticate({ secret }, undefined)).toEqual({
      user: undefined,
      problem: undefined,
    });
  });

  test("reads a token of 8 KiB, and no longer one", async () => {
    const empty = hs256({ ...ann, filler: "" }).length;
    // Base64 makes four characters of three bytes: the filler is cut to fit.
    const filler = (length: number) =>
      hs256({ ...ann, filler: "x".repeat(Math.floor(((length - empty) * 3) / 4)) });
    const longest = filler(8192);
    expect(longest.length).toBeGreaterThan(8188);
    expect(longest.length).toBeLessThanOrEqual(8192);
    expect(await withToken(longest)).toEqual(annUser);
    const tooLong = { user: undefined, problem: "token is longer than 8 KiB" };
    expect(await withToken(filler(8200))).toEqual(tooLong);
    expect(await withToken("a.".repeat(5_000_000))).toEqual(tooLong);
  });

  const signed = hs256(ann);
  const [head = "", body = "", tail = ""] = signed.split(".");
  test.each<[string, string, string]>([
    ["alg none", handmade({ alg: "none" }, ann, () => "x"), "token algorithm not accepted"],
    ["alg None", handmade({ alg: "None" }, ann, () => "x"), "token algorithm not accepted"],
    [
      "alg none and a true signature",
      handmade({ alg: "none" }, ann, hmac(secret)),
      "token algorithm not accepted",
    ],
    [
      "alg HS512",
      handmade({ alg: "HS512" }, ann, hmac(secret, "sha512")),
      "token algorithm not accepted",
    ],
    [
      "alg HS1",
      handmade({ alg: "HS1" }, ann, hmac(secret, "sha1")),
      "token algorithm not accepted",
    ],
    ["alg RS256", handmade({ alg: "RS256" }, ann, hmac(secret)), "token algorithm not accepted"],
    [
      "alg in lower case",
      handmade({ alg: "hs256" }, ann, hmac(secret)),
      "token algorithm not accepted",
    ],
    ["no alg", handmade({ typ: "JWT" }, ann, hmac(secret)), "token is malformed"],
    [
      "an alg that is a list",
      handmade({ alg: ["HS256"] }, ann, hmac(secret)),
      "token is malformed",
    ],
    ["an empty secret", handmade({ alg: "HS256" }, ann, hmac("")), "token signature not accepted"],
    [
      "another secret",
      handmade({ alg: "HS256" }, ann, hmac(`${secret}x`)),
      "token signature not accepted",
    ],
    [
      "a kid that is a path",
      handmade({ alg: "HS256", kid: "../../../../dev/null" }, ann, hmac("")),
      "token signature not accepted",
    ],
    [
      "a kid that is SQL",
      handmade({ alg: "HS256", kid: "' UNION SELECT 'k" }, ann, hmac("k")),
      "token signature not accepted",
    ],
    [
      "a key of its own",
      handmade({ alg: "HS256", jwk: { kty: "oct", k: "aw" } }, ann, hmac("k")),
      "token signature not accepted",
    ],
    [
      "a critical extension",
      hs256(ann, { crit: ["exp2"], exp2: 1 }),
      "token algorithm not accepted",
    ],
    ["an unencoded payload", hs256(ann, { crit: ["b64"], b64: false }), "token is malformed"],
    ["a cut signature", signed.slice(0, -5), "token signature not accepted"],
    [
      "another payload under the same signature",
      `${head}.${encode({ ...ann, sub: "eve" })}.${tail}`,
      "token signature not accepted",
    ],
    [
      "another header over the same signature",
      `${encode({ alg: "HS256", x: 1 })}.${body}.${tail}`,
      "token signature not accepted",
    ],
    ["a header that is no JSON", handmade("nonsense", ann, hmac(secret)), "token is malformed"],
    ["a header that is null", handmade(null, ann, hmac(secret)), "token is malformed"],
    [
      "a payload that is no JSON",
      handmade({ alg: "HS256" }, "nonsense", hmac(secret)),
      "token is malformed",
    ],
    ["a payload that is a list", hs256([ann]), "token is malformed"],
    ["a payload that is null", hs256(null), "token is malformed"],
    ["no exp", hs256({ ...ann, exp: undefined }), "token has no exp claim"],
    ["an exp of null", hs256({ ...ann, exp: null }), "token exp claim not accepted"],
    [
      "an exp that is text",
      hs256({ ...ann, exp: String(ann.exp) }),
      "token exp claim not accepted",
    ],
    ["an exp that is now", hs256({ ...ann, exp: seconds }), "token expired"],
    ["an exp in the past", hs256({ ...ann, exp: 1 }), "token expired"],
    ["an nbf in the future", hs256({ ...ann, nbf: seconds + 1 }), "token not yet valid"],
    ["an nbf that is text", hs256({ ...ann, nbf: "0" }), "token not yet valid"],
    ["an iat that is text", hs256({ ...ann, iat: "0" }), "token iat claim not accepted"],
    ["no sub", hs256({ ...ann, sub: undefined }), "the sub claim is missing"],
    ["no tenant", hs256({ ...ann, tenantId: undefined }), "the tenantId claim is missing"],
    ["a sub that is a number", hs256({ ...ann, sub: 7 }), "the sub claim is not valid"],
    [
      "a tenant that is a list",
      hs256({ ...ann, tenantId: ["acme"] }),
      "the tenantId claim is not valid",
    ],
    [
      "a tenant with NUL",
      hs256({ ...ann, tenantId: "acme\0x" }),
      "the tenantId claim is not valid",
    ],
    [
      "half a surrogate pair",
      handmade({ alg: "HS256" }, `{"sub":"\\ud800","tenantId":"a","exp":9e9}`, hmac(secret)),
      "the sub claim is not valid",
    ],
    [
      "roles that are an object",
      hs256({ ...ann, roles: { admin: true } }),
      "the roles claim is not valid",
    ],
    [
      "a prototype",
      handmade(
        { alg: "HS256" },
        `{"__proto__":{"sub":"ann","tenantId":"acme"},"exp":9e9}`,
        hmac(secret),
      ),
      "the sub claim is missing",
    ],
  ])("rejects a token with %s", async (_, token, problem) => {
    expect(await withToken(token)).toEqual({ user: undefined, problem });
  });

  test("rejects bytes that are not UTF-8", async () => {
    const payload = Buffer.concat([
      Buffer.from('{"exp":9e9,"tenantId":"a","sub":"'),
      Buffer.of(0xff),
      Buffer.from('"}'),
    ]);
    const input = `${encode({ alg: "HS256" })}.${payload.toString("base64url")}`;
    expect(await withToken(`${input}.${hmac(secret)(input).toString("base64url")}`)).toEqual({
      user: undefined,
      problem: "token is malformed",
    });
  });

  test.each<[string, object, string]>([
    ["another iss", { iss: "https://evil.example", aud: "api" }, "token iss claim not accepted"],
    [
      "an iss with a slash more",
      { iss: "https://issuer.example/", aud: "api" },
      "token iss claim not accepted",
    ],
    [
      "an iss that is a list",
      { iss: ["https://issuer.example"], aud: "api" },
      "token iss claim not accepted",
    ],
    ["no iss", { aud: "api" }, "token has no iss claim"],
    [
      "another aud",
      { iss: "https://issuer.example", aud: "other" },
      "token aud claim not accepted",
    ],
    ["no aud", { iss: "https://issuer.example" }, "token has no aud claim"],
  ])("rejects a token with %s if issuer and audience are set", async (_, claims, problem) => {
    const auth = { secret, issuer: "https://issuer.example", audience: "api" };
    expect(await withToken(hs256({ ...ann, ...claims }), auth)).toEqual({
      user: undefined,
      problem,
    });
  });

  test("accepts one of several audiences, on either side", async () => {
    expect(
      await withToken(hs256({ ...ann, aud: ["x", "b"] }), { secret, audience: ["a", "b"] }),
    ).toEqual(annUser);
  });

  test("the tolerance extends exp and nbf by exactly its length", async () => {
    const auth = { secret, clockToleranceSeconds: 5 };
    expect(await withToken(hs256({ ...ann, exp: seconds - 4, nbf: seconds + 5 }), auth)).toEqual(
      annUser,
    );
    expect(await withToken(hs256({ ...ann, exp: seconds - 5 }), auth)).toMatchObject({
      problem: "token expired",
    });
    expect(await withToken(hs256({ ...ann, nbf: seconds + 6 }), auth)).toMatchObject({
      problem: "token not yet valid",
    });
  });

  test("a token expires as the clock advances, with the same authenticator", async () => {
    let now = seconds * 1000;
    const authenticator = createAuthenticator({ auth: { secret }, clock: { now: () => now } });
    const credentials = { authorization: `Bearer ${hs256(ann)}`, gatewayClaims: undefined };
    expect(await authenticator.authenticate(credentials)).toEqual(annUser);
    now += 60_000;
    expect(await authenticator.authenticate(credentials)).toEqual({
      user: undefined,
      problem: "token expired",
    });
  });

  test("no token makes it throw or admits a stranger", async () => {
    const header = fc.oneof(
      fc.json(),
      fc.record({
        alg: fc.constantFrom("HS256", "none", "RS256", ""),
        kid: fc.anything(),
        crit: fc.anything(),
      }),
    );
    const token = fc.tuple(
      header,
      fc.oneof(fc.json(), fc.constant(ann)),
      fc.string({ minLength: 1 }),
    );
    const authenticator = createAuthenticator({ auth: { secret }, clock });
    await fc.assert(
      fc.asyncProperty(token, async ([head, payload, signature]) => {
        const authorization = `Bearer ${handmade(head, payload, () => signature)}`;
        const { user } = await authenticator.authenticate({
          authorization,
          gatewayClaims: undefined,
        });
        expect(user).toBeUndefined();
      }),
    );
  });
});

describe("with a gateway's claims", () => {
  const claims = {
    sub: "ann",
    tenantId: "acme",
    roles: "[admin user]",
    exp: "1700000000",
    token_use: "id",
  };
  const ofGateway = {
    user: { id: "ann", tenantId: "acme", roles: ["admin", "user"], kind: "user" },
  };

  test("identifies the caller even without any auth", async () => {
    expect(await authenticate(undefined, undefined, claims)).toEqual(ofGateway);
  });

  test("prefers the claims to a token", async () => {
    const authorization = `Bearer ${await signToken({ secret, userId: "eve", tenantId: "evil", roles: [] }, clock)}`;
    expect(await authenticate({ secret }, authorization, claims)).toEqual(ofGateway);
    expect(await authenticate({ secret }, authorization, { sub: "ann" })).toEqual({
      user: undefined,
      problem: "the tenantId claim is missing",
    });
  });

  test("reads them by the names in auth", async () => {
    const auth = { secret, claims: { tenant: "custom:tenantId", roles: "cognito:groups" } };
    const cognito = {
      sub: "ann",
      "custom:tenantId": "acme",
      "cognito:groups": "[admin user]",
      tenantId: "evil",
    };
    expect(await authenticate(auth, undefined, cognito)).toEqual(ofGateway);
  });

  test("checks them like a token's", async () => {
    expect(await authenticate(undefined, undefined, { ...claims, tenantId: "" })).toMatchObject({
      user: undefined,
    });
    expect(await authenticate(undefined, undefined, { ...claims, sub: 7 })).toMatchObject({
      user: undefined,
    });
    expect(await authenticate(undefined, undefined, { ...claims, roles: 7 })).toMatchObject({
      user: undefined,
    });
  });

  test("falls back to the token if they do not identify the caller", async () => {
    const context = { principalId: "key", integrationLatency: 3 };
    expect(await authenticate({ secret }, `Bearer ${hs256(ann)}`, context)).toEqual(annUser);
    expect(await authenticate({ secret }, undefined, context)).toEqual({
      user: undefined,
      problem: undefined,
    });
  });
});

test("identifies nobody without auth and without a gateway's claims, even with a valid token", async () => {
  const problem = "authentication is not configured";
  expect(await authenticate(undefined, `Bearer ${hs256(ann)}`)).toEqual({
    user: undefined,
    problem,
  });
  expect(await authenticate(undefined, undefined, {})).toEqual({ user: undefined, problem });
});

test("recognizes the sender of a rejected request by gateway or token, and nobody if neither is valid", async () => {
  const recognize = (
    auth: AuthOptions | undefined,
    authorization?: string,
    gatewayClaims?: Record<string, unknown>,
  ) =>
    createAuthenticator({ auth, clock }).recognize({
      authorization,
      gatewayClaims: byJwt(gatewayClaims),
    });
  const token = `Bearer ${hs256(ann)}`;
  expect(await recognize({ secret }, token)).toEqual(annUser.user);
  expect(await recognize(undefined, undefined, ann)).toEqual(annUser.user);
  expect(await recognize({ secret }, token, { ...ann, tenantId: 7 })).toBeUndefined();
  expect(await recognize({ secret }, token, { principalId: "key" })).toEqual(annUser.user);
  expect(await recognize(undefined, token)).toBeUndefined();
  expect(await recognize({ secret })).toBeUndefined();
  expect(
    await recognize({ secret }, `Bearer ${hs256({ ...ann, exp: seconds - 1 })}`),
  ).toBeUndefined();
  expect(await recognize({ secret }, `Bearer ${hs256({ ...ann, tenantId: "" })}`)).toBeUndefined();
  expect(await recognize({ secret }, `${token}, ${token}`)).toBeUndefined();
});

test("rejects invalid options, all together", () => {
  const auth = { secret: "short", issuer: "" };
  expect(() => createAuthenticator({ auth, clock })).toThrow(BootError);
  expect(() => createAuthenticator({ auth, clock })).toThrow(
    /2 problems at boot.*auth\.secret.*auth\.issuer/s,
  );
});

describe("with a key set", () => {
  const first = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const second = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const curve = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = (key: KeyObject, kid: string) => ({
    ...key.export({ format: "jwk" }),
    kid,
    use: "sig",
  });
  const rs256 = (key: KeyObject, header: object = { kid: "first" }, payload: object = ann) =>
    handmade({ alg: "RS256", ...header }, payload, rsa(key));
  let keys: unknown[] = [];
  let asked = 0;
  let isDown = false;
  const server = createServer((_, response) => {
    asked += 1;
    response
      .writeHead(isDown ? 500 : 200, { "content-type": "application/json" })
      .end(JSON.stringify({ keys }));
  });
  let auth: AuthOptions;
  beforeAll(async () => {
    await once(server.listen(0, "127.0.0.1"), "listening");
    // A server that listens on a port has an AddressInfo.
    auth = { jwks: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys` };
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test("recognizes the sender of a rejected request with loaded keys, and fetches none for it", async () => {
    keys = [jwk(first.publicKey, "first")];
    asked = 0;
    const authenticator = createAuthenticator({ auth, clock });
    const recognize = (token: string) =>
      authenticator.recognize({ authorization: `Bearer ${token}`, gatewayClaims: undefined });
    const token = rs256(first.privateKey);
    expect([await recognize(token), asked]).toEqual([undefined, 0]);
    await authenticator.authenticate({
      authorization: `Bearer ${token}`,
      gatewayClaims: undefined,
    });
    expect(await recognize(token)).toEqual(annUser.user);
    expect(await recognize(rs256(second.privateKey, { kid: "second" }))).toBeUndefined();
    expect(await recognize(rs256(second.privateKey))).toBeUndefined();
    expect(asked).toBe(1);
  });

  test("accepts a token signed with one of its keys, and fetches the set once", async () => {
    keys = [jwk(first.publicKey, "first"), jwk(curve.publicKey, "curve")];
    asked = 0;
    const authenticator = createAuthenticator({ auth, clock });
    const ec = handmade({ alg: "ES256", kid: "curve" }, ann, (input) =>
      sign("sha256", Buffer.from(input), { key: curve.privateKey, dsaEncoding: "ieee-p1363" }),
    );
    const tokens = [
      rs256(first.privateKey),
      rs256(first.privateKey),
      ec,
      rs256(first.privateKey, {}),
    ];
    const credentials = tokens.map((token) => ({
      authorization: `Bearer ${token}`,
      gatewayClaims: undefined,
    }));
    for (const identification of await Promise.all(
      credentials.map((each) => authenticator.authenticate(each)),
    )) {
      expect(identification).toEqual(annUser);
    }
    expect(asked).toBe(1);
  });

  test("rejects a token signed with another key", async () => {
    keys = [
      jwk(first.publicKey, "first"),
      { kty: "oct", kid: "secret", k: encode(secret), alg: "HS256" },
    ];
    const pem = first.publicKey.export({ format: "pem", type: "spki" });
    const der = first.publicKey.export({ format: "der", type: "spki" });
    const { n = "" } = first.publicKey.export({ format: "jwk" });
    const algorithm = "token algorithm not accepted";
    const attacks: [string, string][] = [
      [handmade({ alg: "HS256", kid: "first" }, ann, hmac(pem)), algorithm],
      [handmade({ alg: "HS256", kid: "first" }, ann, hmac(der)), algorithm],
      [handmade({ alg: "HS256", kid: "first" }, ann, hmac(n)), algorithm],
      [handmade({ alg: "HS256", kid: "secret" }, ann, hmac(secret)), algorithm],
      [handmade({ alg: "none", kid: "first" }, ann, () => "x"), algorithm],
      [rs256(second.privateKey), "token signature not accepted"],
      [
        rs256(second.privateKey, { kid: "first", jwk: jwk(second.publicKey, "first") }),
        "token signature not accepted",
      ],
      [
        rs256(second.privateKey, { kid: "x", jku: "https://evil.example/keys" }),
        "token signature not accepted",
      ],
      [rs256(second.privateKey, { kid: "../first" }), "token signature not accepted"],
      [
        handmade({ alg: "ES256", kid: "first" }, ann, rsa(first.privateKey)),
        "token signature not accepted",
      ],
      [
        handmade({ alg: "PS256", kid: "first" }, ann, rsa(first.privateKey)),
        "token signature not accepted",
      ],
      [
        rs256(first.privateKey, { kid: "first" }, { ...ann, exp: undefined }),
        "token has no exp claim",
      ],
    ];
    for (const [token, problem] of attacks) {
      expect(await authenticate(auth, `Bearer ${token}`)).toEqual({ user: undefined, problem });
    }
  });

  test("rejects a token that does not name its key if several match", async () => {
    keys = [jwk(first.publicKey, "first"), jwk(second.publicKey, "second")];
    expect(await authenticate(auth, `Bearer ${rs256(first.privateKey, {})}`)).toEqual({
      user: undefined,
      problem: "token does not name its key (kid)",
    });
  });

  test("after a rotation, accepts tokens of the new key and rejects those of the old one", async () => {
    let now = seconds * 1000;
    const authenticator = createAuthenticator({ auth, clock: { now: () => now } });
    const say = (token: string) =>
      authenticator.authenticate({ authorization: `Bearer ${token}`, gatewayClaims: undefined });
    keys = [jwk(first.publicKey, "first")];
    expect(await say(rs256(first.privateKey))).toEqual(annUser);
    keys = [jwk(second.publicKey, "second")];
    now += 10_000;
    expect(await say(rs256(second.privateKey, { kid: "second" }))).toEqual(annUser);
    expect(await say(rs256(first.privateKey))).toEqual({
      user: undefined,
      problem: "token signature not accepted",
    });
  });

  test("reports an outage as a 503 with its cause, not as a bad token", async () => {
    isDown = true;
    try {
      const failure = await authenticate(auth, `Bearer ${rs256(first.privateKey)}`).catch(
        (error: unknown) => error,
      );
      expect(failure).toBeInstanceOf(PipelineError);
      expect(failure).toMatchObject({
        status: 503,
        headers: { "retry-after": "2" },
        cause: { name: "KeysUnavailableError" },
      });
      expect(failure).toHaveProperty("cause.cause.message", expect.stringContaining("status 500"));
      expect(String(failure)).not.toContain("127.0.0.1");
    } finally {
      isDown = false;
    }
  });

  test("reports an unusable key in the set as a 503 as well", async () => {
    const weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
    keys = [jwk(weak.publicKey, "first")];
    await expect(authenticate(auth, `Bearer ${rs256(weak.privateKey)}`)).rejects.toMatchObject({
      status: 503,
    });
  });
});

test("loads jose with the first token, not before", async () => {
  const program = `
    import { registerHooks } from "node:module";
    let loaded = false;
    registerHooks({ load: (url, context, next) => { loaded ||= url.includes("/jose/"); return next(url, context); } });
    const { createAuthenticator } = await import(${JSON.stringify(new URL("./authenticator.ts", import.meta.url).href)});
    const authenticator = createAuthenticator({ auth: { secret: "s".repeat(32) }, clock: Date });
    await authenticator.authenticate({ authorization: undefined, gatewayClaims: { by: "jwt", claims: { sub: "a", tenantId: "b" } } });
    const before = loaded;
    await authenticator.authenticate({ authorization: "Bearer a.b.c", gatewayClaims: undefined });
    console.log(before, loaded);`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--input-type=module",
    "--eval",
    program,
  ]);
  expect(stdout).toBe("false true\n");
});
