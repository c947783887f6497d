import { afterEach, beforeEach, expect, test } from "vitest";
import { type StubSts, stubSts } from "../../../../test/support/stub-sts.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import type { Environment } from "../../../base/process/environment.ts";
import { outcomeOf } from "./outcome.ts";
import { placeOf } from "./place.ts";
import { isolationChecks } from "./protection.ts";

const files = defineFeature("files", (r) => {
  r.table("files", { partitionKey: "pk", tenant: true });
});
const role = "arn:aws:iam::123456789012:role/tenants";

let sts: StubSts;
beforeEach(async () => {
  sts = await stubSts();
});
afterEach(() => sts.close());

/** What the check of a server's role comes to. */
async function look(
  variables: Record<string, string>,
  environment: Environment = "production",
  isEmulator = false,
) {
  const env = {
    AWS_REGION: "eu-west-1",
    AWS_ACCESS_KEY_ID: "a",
    AWS_SECRET_ACCESS_KEY: "s",
    ...variables,
  };
  const server = serverInternals(buildServer({ features: [files], isolation: {}, environment }));
  const given = { signal: AbortSignal.timeout(10_000), timeoutMs: 10_000, endpoint: sts.endpoint };
  const [check] = isolationChecks(server, env, { ...placeOf("sts", env, given), isEmulator });
  const { status, message, fix } = (await check?.run().catch(outcomeOf)) ?? {};
  return [status, message, ...(fix ?? [])];
}

test("assumes the role once, for a reserved tenant and the shortest duration", async () => {
  expect(await look({ KEELSON_ISOLATION_ROLE: role })).toEqual([
    "ok",
    `${role} can be assumed, with a session tag`,
  ]);
  expect(sts.asked).toEqual([
    expect.objectContaining({
      RoleArn: role,
      "Tags.member.1.Key": "tenant",
      "Tags.member.1.Value": "keelson-doctor",
      DurationSeconds: "900",
    }),
  ]);
});

test("skips the check when these credentials may not assume the role", async () => {
  sts.answer(
    403,
    "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>",
  );
  expect(await look({ KEELSON_ISOLATION_ROLE: role })).toEqual([
    "skip",
    `not checked: these credentials may not assume ${role} with a session tag; the server's have to`,
  ]);
});

test("fails when STS returns another error", async () => {
  sts.answer(
    400,
    "<ErrorResponse><Error><Code>ValidationError</Code><Message>no role</Message></Error></ErrorResponse>",
  );
  expect(await look({ KEELSON_ISOLATION_ROLE: role })).toEqual([
    "fail",
    expect.stringContaining("sts AssumeRole of arn:aws:iam::"),
  ]);
});

test("reports a missing role, without which the server does not start in production", async () => {
  expect(await look({})).toEqual([
    "fail",
    "nothing names the role, so the server does not start: set isolation.role or KEELSON_ISOLATION_ROLE",
    "export KEELSON_ISOLATION_ROLE=arn:aws:iam::<account>:role/<name>",
  ]);
  const skipped = [
    "skip",
    "not checked: KEELSON_ISOLATION_ROLE is not set, so there is no wall in the account here",
  ];
  expect(await look({}, "development")).toEqual(skipped);
  expect(await look({}, "production", true)).toEqual(skipped);
  expect(sts.asked).toEqual([]);
});
