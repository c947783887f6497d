import { decodeJwt, decodeProtectedHeader } from "jose";
import { describe, expect, test } from "vitest";
import { createAuthenticator } from "./authenticator.ts";
import { signToken } from "./token.ts";

const secret = "s".repeat(32);
const clock = { now: () => 1_700_000_000_500 };
const ann = { secret, userId: "ann", tenantId: "acme", roles: ["admin", "x"] };

describe("signToken", () => {
  test("signs with HS256, valid for a day by default", async () => {
    const token = await signToken(ann, clock);
    expect(decodeProtectedHeader(token)).toEqual({ alg: "HS256", typ: "JWT" });
    expect(decodeJwt(token)).toEqual({
      sub: "ann",
      tenantId: "acme",
      roles: ["admin", "x"],
      iat: 1_700_000_000,
      exp: 1_700_086_400,
    });
    expect(decodeJwt(await signToken({ ...ann, expiresInSeconds: 1 }, clock)).exp).toBe(
      1_700_000_001,
    );
  });

  test.each([
    [{}],
    [{ issuer: "https://issuer.example", audience: "api" }],
    [{ audience: ["api", "other"] }],
    [{ claims: { user: "username", tenant: "custom:tenantId", roles: "groups" } }],
  ])("%# creates a token that a server with the same options accepts: %o", async (options) => {
    const authenticator = createAuthenticator({ auth: { secret, ...options }, clock });
    const token = await signToken({ ...ann, ...options }, clock);
    expect(
      await authenticator.authenticate({
        authorization: `Bearer ${token}`,
        gatewayClaims: undefined,
      }),
    ).toEqual({
      user: { id: "ann", tenantId: "acme", roles: ["admin", "x"], kind: "user" },
    });
  });

  test.each([
    [{ secret: "short" }, /auth\.secret has 5 bytes, below the minimum of 32; set a string/],
    [{ issuer: "" }, /auth\.issuer/],
    [{ userId: "" }, /the sub claim is not valid; user, tenant and roles are/],
    [{ tenantId: "a\nb" }, /the tenantId claim is not valid/],
    [{ roles: [""] }, /the roles claim is not valid/],
    [{ claims: { tenant: "sub" } }, /are the same name; name a claim for each/],
    [{ claims: { roles: "tenantId" } }, /are the same name/],
    [{ expiresInSeconds: 0 }, /expiresInSeconds 0 is not a whole number from 1 to 315360000/],
    [{ expiresInSeconds: 1.5 }, /expiresInSeconds 1.5/],
    [{ expiresInSeconds: Number.NaN }, /expiresInSeconds NaN/],
    [{ expiresInSeconds: 315_360_001 }, /expiresInSeconds 315360001/],
  ])("%# rejects what a server would reject: %o", async (options, message) => {
    const signing = signToken({ ...ann, ...options }, clock);
    await expect(signing).rejects.toThrow(TypeError);
    await expect(signing).rejects.toThrow(message);
  });

  test("signs for a server whose user is the tenant", async () => {
    const token = await signToken({ ...ann, tenantId: "ann", claims: { tenant: "sub" } }, clock);
    expect(decodeJwt(token)).toMatchObject({ sub: "ann" });
  });
});
