import { FrameworkError } from "keelson";
import { expect, test } from "vitest";
import type { Authenticator, GatewayClaims } from "../../base/identity/authenticator.ts";
import { lazy } from "../../base/process/lazy.ts";
import { generateSecret } from "../../parts/api-keys/secret.ts";
import { createCallers } from "./callers.ts";

const secret = generateSecret();
const owner = { id: "key_1", tenantId: "acme", roles: ["reader"], endsMs: undefined };
const ofToken = { id: "ann", tenantId: "acme", roles: [], kind: "user" } as const;
const tokens: Authenticator = {
  authenticate: async () => ({ user: ofToken }),
  recognize: async () => ofToken,
};

function callers(verify: () => Promise<typeof owner | undefined> = async () => owner) {
  const keys = { verify, atHand: () => owner, forget: () => undefined };
  const apiKeys = lazy(async () => keys);
  return { apiKeys, callers: createCallers({ auth: { apiKeys: true }, tokens, apiKeys }) };
}

const given = (headers: Record<string, string>, claims?: GatewayClaims["claims"]) => ({
  authorization: headers["authorization"],
  gatewayClaims: claims && ({ by: "jwt", claims } as const),
  request: { headers },
});

test("the claims of a gateway and an API key are two credentials", async () => {
  const { callers: of } = callers();
  const two = given({ "x-api-key": secret }, { sub: "ann", tenantId: "acme" });
  expect(await of.authenticate(two)).toEqual({
    user: undefined,
    problem: "the request has two credentials; send one of them",
  });
  expect(await of.recognize(two)).toBeUndefined();
  // These name nobody.
  const one = given({ "x-api-key": secret }, { scope: "all" });
  expect(await of.authenticate(one)).toMatchObject({ user: { id: "key_1", kind: "apiKey" } });
});

test("without an API key, tokens decide", async () => {
  const { callers: of } = callers();
  expect(await of.authenticate(given({}))).toEqual({ user: ofToken });
  expect(await of.recognize(given({ authorization: "Bearer a.b.c" }))).toEqual(ofToken);
});

test("a caller is recognized only by keys that are loaded", async () => {
  const { apiKeys, callers: of } = callers();
  const one = given({ authorization: `Bearer ${secret}` });
  expect(await of.recognize(one)).toBeUndefined();
  await apiKeys.open();
  expect(await of.recognize(one)).toMatchObject({ id: "key_1" });
});

test("a typed error passes, and any other becomes a 503", async () => {
  const typed = new FrameworkError("config_unavailable", "not now");
  const failing = (error: Error) => callers(() => Promise.reject(error)).callers;
  const one = given({ "x-api-key": secret });
  await expect(failing(typed).authenticate(one)).rejects.toBe(typed);
  await expect(failing(new Error("away")).authenticate(one)).rejects.toMatchObject({
    status: 503,
    headers: { "retry-after": "2" },
  });
});
