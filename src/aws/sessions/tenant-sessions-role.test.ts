import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { accessKeyOf, type StubSts, stubSts } from "../../../test/support/stub-sts.ts";
import { describeError } from "../../base/errors/describe.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { Database } from "../../base/types/database.ts";
import { acrossTag } from "../../parts/wall/isolation.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { type AssumedRole, openAssumedRole } from "./tenant-sessions.ts";

const role = "arn:aws:iam::123456789012:role/tenants";
const secret = "the secret of the process";
const acme = { key: "tenant", value: "acme" } as const;

let sts: StubSts;
let database: Database;
let roles: AssumedRole[] = [];
const clock = { nowMs: 0, now: () => clock.nowMs };
const log = { warn: vi.fn() };

beforeEach(async () => {
  sts = await stubSts();
  database = await openDatabase({
    region: "eu-west-1",
    credentials: { accessKeyId: "AKIAPROCESS", secretAccessKey: secret },
  });
  roles = [];
  clock.nowMs = 1_000_000;
  log.warn.mockClear();
});
afterEach(() => {
  for (const opened of roles) opened.close();
  database.destroy();
  sts.close();
});

function open(region?: string): AssumedRole {
  const opened = openAssumedRole({ role, database, endpoint: sts.endpoint, region, clock, log });
  roles.push(opened);
  return opened;
}

/** Whose signature a request gets. */
async function signedBy(
  opened: AssumedRole,
  tag: Parameters<AssumedRole["open"]>[0],
): Promise<string | undefined> {
  const headers = {
    host: "h",
    "x-amz-date": "20261122T100000Z",
    authorization:
      "AWS4-HMAC-SHA256 Credential=AKIAPROCESS/20261122/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
  };
  const request = { path: "/", body: "{}", headers };
  (await opened.open(tag))(request);
  return /Credential=([^/]+)/.exec(request.headers.authorization)?.[1];
}

test("tags a session with its tenant, names it after the tenant, and requests it for an hour with the process's own credentials", async () => {
  const opened = open();
  expect(await signedBy(opened, acme)).toBe(accessKeyOf("tenant", "acme"));
  expect(await signedBy(opened, acme)).toBe(accessKeyOf("tenant", "acme"));
  expect(sts.asked).toEqual([
    expect.objectContaining({
      Action: "AssumeRole",
      RoleArn: role,
      RoleSessionName: "tenant-acme",
      DurationSeconds: "3600",
      "Tags.member.1.Key": "tenant",
      "Tags.member.1.Value": "acme",
      authorization: expect.stringContaining("Credential=AKIAPROCESS/"),
    }),
  ]);
  expect(sts.asked[0]).not.toHaveProperty("Tags.member.2.Key");
});

test("uses another tag for a session across tenants, and cuts a long name to the limit of STS", async () => {
  const opened = open("eu-central-1");
  expect(await signedBy(opened, acrossTag)).toBe(accessKeyOf("across", "true"));
  await signedBy(opened, { key: "tenant", value: "x".repeat(256) });
  expect(sts.asked.map(({ RoleSessionName }) => RoleSessionName)).toEqual([
    "across-true",
    `tenant-${"x".repeat(57)}`,
  ]);
  expect(sts.asked[0]?.["authorization"]).toContain("/eu-central-1/sts/");
});

const denied = `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>`;

test("tells the caller to retry if the role cannot be assumed, logs the reason, and reveals no credentials", async () => {
  const opened = open();
  sts.answer(403, denied);
  const error = await opened.open(acme).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(FrameworkError);
  expect(error).toMatchObject({
    code: "isolation_unavailable",
    status: 503,
    headers: { "retry-after": "1" },
    message: "The tenant's data cannot be reached at the moment",
    cause: { name: "AccessDenied" },
  });
  const told = JSON.stringify(describeError(error, { requestId: "r", environment: "production" }));
  expect(told).toContain("sts:AssumeRole");
  expect(told).not.toContain("AKIA");
  expect(told).not.toContain(secret);
});

test("treats a response without credentials as a failure, and does not reveal it", async () => {
  const opened = open();
  for (const body of [
    "<AssumeRoleResponse><AssumeRoleResult></AssumeRoleResult></AssumeRoleResponse>",
    "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAHALF</AccessKeyId></Credentials></AssumeRoleResult></AssumeRoleResponse>",
  ]) {
    sts.answer(200, body);
    await expect(opened.open(acme)).rejects.toMatchObject({
      code: "isolation_unavailable",
      cause: { message: "AssumeRole answered without credentials" },
    });
    clock.nowMs += 1_000;
  }
});

test("keeps using a session that cannot be renewed, and logs that without its credentials", async () => {
  const opened = open();
  await opened.open(acme);
  sts.answer(403, denied);
  clock.nowMs += 3_400_000;
  expect(await signedBy(opened, acme)).toBe(accessKeyOf("tenant", "acme"));
  await expect
    .poll(() => log.warn.mock.calls)
    .toEqual([
      [
        "tenant.session_stale",
        { error: "AccessDenied: not authorized to perform: sts:AssumeRole" },
      ],
    ]);
});

test("closes a session that was never requested", () => {
  expect(() => open().close()).not.toThrow();
});
