import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { access } from "./access.ts";
import { authProblems } from "./auth-options.ts";

const secret = "s".repeat(32);
const jwks = "https://issuer.example/keys";
test.each<[unknown]>([
  [{ secret }],
  [{ secret: "ü".repeat(16) }],
  [{ jwks }],
  [{ jwks: "http://localhost:3000/keys" }],
  [{ jwks: "http://127.0.0.1:3000/keys" }],
  [{ jwks: "http://[::1]/keys" }],
  [
    {
      jwks,
      secret: undefined,
      issuer: "https://issuer.example/",
      audience: "a",
      claims: {},
      clockToleranceSeconds: 0,
    },
  ],
  [
    {
      jwks,
      audience: ["a", "b"],
      claims: { user: "username", tenant: "custom:tenantId", roles: "cognito:groups" },
    },
  ],
  [{ jwks, clockToleranceSeconds: 300 }],
  [{ secret, apiKeys: true }],
  [{ apiKeys: false }],
  [{ apiKeys: {}, claims: { tenant: "org" } }],
  [{ jwks, apiKeys: { manage: access.roles("owner") } }],
])("%# accepts the valid options %o", (options) => {
  expect(authProblems(options)).toEqual([]);
});

test.each<[unknown, string, string]>([
  [undefined, "auth", "not-an-object"],
  [null, "auth", "not-an-object"],
  ["secret", "auth", "not-an-object"],
  [[], "auth", "not-an-object"],
  [{}, "auth", "jwks-or-secret"],
  [{ jwks, secret }, "auth", "jwks-or-secret"],
  [{ jwks, secret, apiKeys: true }, "auth", "jwks-or-secret"],
  [{ secret, apiKeys: "all" }, "auth.apiKeys", "option-type"],
  [{ secret, apiKeys: { manage: "admin" } }, "auth.apiKeys", "option-type"],
  [{ secret, apiKeys: { manage: access.everyone } }, "auth.apiKeys", "option-type"],
  [{ secret, apiKeys: { roles: [] } }, "auth.apiKeys", "option-type"],
  [{ secret: "s".repeat(31) }, "auth.secret", "secret-length"],
  [{ secret: "" }, "auth.secret", "secret-length"],
  [{ secret: Buffer.alloc(32) }, "auth.secret", "not-a-string"],
  [{ jwks: "keys.json" }, "auth.jwks", "not-a-url"],
  [{ jwks: () => jwks }, "auth.jwks", "not-a-url"],
  [{ jwks: new URL(jwks) }, "auth.jwks", "not-a-url"],
  [{ jwks: "http://issuer.example/keys" }, "auth.jwks", "not-https"],
  [{ jwks: "http://localhost.example/keys" }, "auth.jwks", "not-https"],
  [{ jwks: "http://127.0.0.1.example/keys" }, "auth.jwks", "not-https"],
  [{ jwks: "file:///etc/keys" }, "auth.jwks", "not-https"],
  [{ jwks: "https://user@issuer.example/keys" }, "auth.jwks", "url-credentials"],
  [{ jwks: "https://:hunter2@issuer.example/keys" }, "auth.jwks", "url-credentials"],
  [{ secret, issuer: "" }, "auth.issuer", "not-a-string"],
  [{ secret, issuer: ["a"] }, "auth.issuer", "not-a-string"],
  [{ secret, audience: "" }, "auth.audience", "not-a-string"],
  [{ secret, audience: [] }, "auth.audience", "not-a-string"],
  [{ secret, audience: ["a", 1] }, "auth.audience", "not-a-string"],
  [{ secret, claims: "sub" }, "auth.claims", "not-an-object"],
  [{ secret, claims: { user: "" } }, "auth.claims.user", "not-a-string"],
  [{ secret, claims: { tenant: ["a", "b"] } }, "auth.claims.tenant", "not-a-string"],
  [{ secret, claims: { role: "x" } }, "auth.claims.role", "unknown-option"],
  [{ secret, clockToleranceSeconds: -1 }, "auth.clockToleranceSeconds", "out-of-bounds"],
  [{ secret, clockToleranceSeconds: 301 }, "auth.clockToleranceSeconds", "out-of-bounds"],
  [{ secret, clockToleranceSeconds: Number.NaN }, "auth.clockToleranceSeconds", "out-of-bounds"],
  [{ secret, clockToleranceSeconds: "5s" }, "auth.clockToleranceSeconds", "out-of-bounds"],
  [{ secret, algorithms: ["none"] }, "auth.algorithms", "unknown-option"],
])("%# names a wrong option and the fix: %o", (options, key, rule) => {
  const problems = authProblems(options);
  expect(problems).toEqual([
    { key, rule, message: expect.stringMatching(/\S/), fix: expect.stringMatching(/\S/) },
  ]);
});

test.each<[unknown, string]>([
  [[], "is an empty list"],
  [[[]], "is an empty list"],
  [[["hunter2"]], "is a list within a list"],
  [null, "is null"],
  [[undefined], "is undefined"],
  [{}, "is an object"],
  [1234567, "is a number"],
  [true, "is a boolean"],
])("the secret %j is described by its kind alone", (secret, kind) => {
  expect(authProblems({ secret })).toMatchObject([
    { rule: "not-a-string", message: `auth.secret ${kind}` },
  ]);
});

describe("authProblems", () => {
  test("finds all problems together", () => {
    const problems = authProblems({
      secret: "short",
      issuer: 1,
      audience: 1,
      claims: { user: 1, x: 1 },
      clockToleranceSeconds: 1e9,
      y: 1,
    });
    expect(problems.map((problem) => problem.key).toSorted()).toEqual([
      "auth.audience",
      "auth.claims.user",
      "auth.claims.x",
      "auth.clockToleranceSeconds",
      "auth.issuer",
      "auth.secret",
      "auth.y",
    ]);
  });

  test("never reveals a secret or a password", () => {
    const text = JSON.stringify([
      authProblems({ secret: "hunter2" }),
      authProblems({ jwks: "http://a:hunter2@issuer.example" }),
    ]);
    expect(text).not.toContain("hunter2");
    expect(text).toContain("auth.secret has 7 bytes");
  });

  test("shows a wrong value shortened and on one line", () => {
    const [problem] = authProblems({ jwks: `a\n${"b".repeat(10_000)}` });
    expect(problem?.message).toMatch(/^auth\.jwks is "a\\nb+\.\.\."$/);
    expect(problem?.message.length).toBeLessThan(200);
  });

  test("reports options whose members throw", () => {
    const options = {
      get secret() {
        throw new Error("no");
      },
    };
    expect(authProblems(options)).toEqual([
      expect.objectContaining({ key: "auth", rule: "unreadable" }),
    ]);
  });

  test("never throws, for any input", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (options, member) => {
        authProblems(options);
        authProblems({
          jwks: member,
          issuer: member,
          audience: member,
          claims: member,
          clockToleranceSeconds: member,
        });
      }),
    );
  });
});
