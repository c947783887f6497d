import { describe, expect, test } from "vitest";
import { AccessDeniedError, NotFoundError, ValidationError } from "../../../base/errors/errors.ts";
import { type AccessRule, access, anonymous, type User } from "../../../base/identity/access.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../declare/declaration.ts";
import type { KeyDeclaration } from "../declare/key.ts";
import {
  authorizeRead,
  authorizeTarget,
  authorizeWrite,
  type ConfigTarget,
  levelOf,
  mayRead,
  mayWriteSystemRow,
  ownerAt,
  type TargetKey,
} from "./target.ts";

const ann: User = { id: "ann", tenantId: "acme", roles: ["editor"], kind: "user" };
const admin: User = { ...ann, roles: ["admin"] };
const operator: User = { ...ann, roles: ["systemAdmin"] };
const ofAnn = { tenantId: "acme", userId: "ann" };

const key = ({ definition }: KeyDeclaration<unknown>): TargetKey => ({
  id: "files:config:key",
  definition,
});
const rules = (read: AccessRule, write: AccessRule) => ({ access: { read, write } });
const open = rules(access.everyone, access.everyone);
const ofUser = key(createUserConfig("number", open));
const ofTenant = key(createTenantConfig("number", open));
const ofSystem = key(createSystemConfig("number", open));

/** What is thrown, as a client is told. */
function refusal(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    if (error instanceof ValidationError) return error.fields;
    if (error instanceof Error && "code" in error) return [error.code, error.message];
    throw error;
  }
  return undefined;
}

describe("authorizeTarget", () => {
  test.each<[ConfigTarget, unknown]>([
    [{}, ofAnn],
    [{ tenantId: "acme" }, ofAnn],
    [{ userId: "ann" }, ofAnn],
    [{ tenantId: "acme", userId: "ann" }, ofAnn],
  ])("resolves the target %j to the caller", (target, owner) => {
    expect(authorizeTarget(ann, target, "user")).toEqual({ owner, scope: "user", isOther: false });
  });

  test.each<[ConfigTarget, unknown]>([
    [{ userId: "bob" }, { tenantId: "acme", userId: "bob" }],
    [
      { tenantId: "acme", userId: "bob" },
      { tenantId: "acme", userId: "bob" },
    ],
    [
      { tenantId: "globex", userId: "ann" },
      { tenantId: "globex", userId: "ann" },
    ],
    [{ tenantId: "globex" }, { tenantId: "globex", userId: undefined }],
  ])("resolves the target %j to another owner, and requires systemAdmin", (target, owner) => {
    expect(authorizeTarget(operator, target, "user")).toEqual({
      owner,
      scope: "user",
      isOther: true,
    });
    for (const user of [ann, admin, anonymous]) {
      expect(() => authorizeTarget(user, target, "user")).toThrow(AccessDeniedError);
      expect(() => authorizeTarget(user, target, "user")).toThrow(
        "another tenant or user takes systemAdmin",
      );
    }
  });

  test("uses the key's own level by default", () => {
    expect(authorizeTarget(ann, {}, "tenant").scope).toBe("tenant");
    expect(authorizeTarget(ann, { scope: "system" }, "tenant").scope).toBe("system");
  });

  test("reports an invalid ID and an invalid level together, field by field", () => {
    const target = { scope: "toString", tenantId: "", userId: "a\nb" } as unknown as ConfigTarget;
    expect(refusal(() => authorizeTarget(operator, target, "user"))).toEqual([
      { field: "tenantId", error: "is not an ID that a token can have" },
      { field: "userId", error: "is not an ID that a token can have" },
      { field: "scope", error: "must be system, tenant or user" },
    ]);
    expect(
      refusal(() => authorizeTarget(operator, { tenantId: "globex", userId: "" }, "user")),
    ).toEqual([{ field: "userId", error: "is not an ID that a token can have" }]);
  });
});

describe("reading a key", () => {
  test("hides a key that the caller may not read", () => {
    const closed = key(createTenantConfig("number", rules(access.admin, access.admin)));
    expect([mayRead(ann, closed), mayRead(admin, closed)]).toEqual([false, true]);
    for (const authorize of [authorizeRead, authorizeWrite]) {
      expect(() => authorize(ann, closed, {})).toThrow(NotFoundError);
      expect(() => authorize(ann, closed, {})).toThrow("config key files:config:key not found");
    }
    expect(authorizeRead(admin, closed, {})).toEqual({
      owner: ofAnn,
      scope: "tenant",
      isOther: false,
    });
  });

  test("refuses a level narrower than the key's, and allows a broader one", () => {
    expect(refusal(() => authorizeRead(ann, ofTenant, { scope: "user" }))).toEqual([
      { field: "scope", error: "a tenant key has no user rows" },
    ]);
    expect(refusal(() => authorizeRead(ann, ofSystem, { scope: "tenant" }))).toEqual([
      { field: "scope", error: "a system key has no tenant rows" },
    ]);
    for (const scope of ["user", "tenant", "system"] as const)
      expect(authorizeRead(ann, ofUser, { scope }).scope).toBe(scope);
  });
});

describe("writing a key", () => {
  test("requires an authenticated caller, whatever the key's rule", () => {
    expect(refusal(() => authorizeWrite(anonymous, ofSystem, {}))).toEqual([
      "unauthenticated",
      "Authentication required",
    ]);
  });

  test("requires the key's write rule, and names it in the error", () => {
    const guarded = key(
      createTenantConfig("number", rules(access.everyone, access.roles("owner"))),
    );
    expect(refusal(() => authorizeWrite(ann, guarded, {}))).toEqual([
      "access_denied",
      "Access denied: to write files:config:key takes roles(owner)",
    ]);
    expect(authorizeWrite({ ...ann, roles: ["owner"] }, guarded, {})).toEqual({
      owner: ofAnn,
      scope: "tenant",
      isOther: false,
    });
  });

  test("also requires systemAdmin for a row broader than the key", () => {
    expect(authorizeWrite(ann, ofUser, {}).scope).toBe("user");
    expect(authorizeWrite(ann, ofSystem, {}).scope).toBe("system");
    for (const user of [ann, admin]) {
      expect(refusal(() => authorizeWrite(user, ofUser, { scope: "tenant" }))).toEqual([
        "access_denied",
        "Access denied: to write a user key's tenant rows takes systemAdmin",
      ]);
      expect(refusal(() => authorizeWrite(user, ofTenant, { scope: "system" }))).toEqual([
        "access_denied",
        "Access denied: to write a tenant key's system rows takes systemAdmin",
      ]);
    }
    expect(authorizeWrite(operator, ofUser, { scope: "system" }).scope).toBe("system");
  });

  test.each<[string, User, TargetKey, boolean]>([
    ["nobody", anonymous, ofSystem, false],
    [
      "a user, of a key that they may not write,",
      ann,
      key(createSystemConfig("number", rules(access.everyone, access.admin))),
      false,
    ],
    ["a user, of a system key that they may write,", ann, ofSystem, true],
    ["a user, of a narrower key,", ann, ofTenant, false],
    ["a system administrator, of a narrower key,", operator, ofTenant, true],
    [
      "a system administrator, of a key for others,",
      operator,
      key(createTenantConfig("number", rules(access.everyone, access.roles("owner")))),
      false,
    ],
  ])("checks access to the system row: %s", (_whose, user, subject, expected) => {
    expect(mayWriteSystemRow(user, subject)).toBe(expected);
  });
});

describe("the row of a target", () => {
  const at = (
    scope: "user" | "tenant" | "system",
    owner: { tenantId: string | undefined; userId: string | undefined },
  ) => ({
    owner,
    scope,
    isOther: false,
  });

  test("belongs to its level", () => {
    expect(levelOf(at("user", ofAnn))).toEqual({
      source: "user-row",
      partition: "config#user#acme#ann",
    });
    expect(levelOf(at("tenant", ofAnn))).toEqual({
      source: "tenant-row",
      partition: "config#tenant#acme",
    });
    expect(levelOf(at("system", ofAnn))).toEqual({
      source: "system-row",
      partition: "config#system",
    });
  });

  test("is refused when the target names no owner", () => {
    expect(refusal(() => levelOf(at("user", { ...ofAnn, userId: undefined })))).toEqual([
      { field: "userId", error: "a user row belongs to a user; name one" },
    ]);
    expect(
      refusal(() => levelOf(at("tenant", { tenantId: undefined, userId: undefined }))),
    ).toEqual([{ field: "tenantId", error: "a tenant row belongs to a tenant; name one" }]);
  });

  test("excludes narrower rows from a reader at a broader level", () => {
    expect(ownerAt(at("user", ofAnn))).toEqual(ofAnn);
    expect(ownerAt(at("tenant", ofAnn))).toEqual({ tenantId: "acme", userId: undefined });
    expect(ownerAt(at("system", ofAnn))).toEqual({ tenantId: undefined, userId: undefined });
  });
});
