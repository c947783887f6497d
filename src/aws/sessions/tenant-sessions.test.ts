import { expect, test } from "vitest";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Environment } from "../../base/process/environment.ts";
import { acrossTag } from "../../parts/wall/isolation.ts";
import { openTenantSessions } from "./tenant-sessions.ts";

const role = "arn:aws:iam::123456789012:role/tenants";

/** The sessions of a server that asks for them, with nothing but what it is opened with. */
function open(
  variables: Record<string, string>,
  {
    environment = "production",
    isChecked = true,
  }: { environment?: Environment; isChecked?: boolean } = {},
) {
  const runtime = { server: { options: { isolation: {} } }, environment } as unknown as Runtime; // safe: no session is taken
  return openTenantSessions(runtime, { database: {} as never, variables, isChecked });
}

test("requires a role in production", () => {
  expect(() => open({})).toThrow("isolation: there is no role");
  expect(open({ KEELSON_ISOLATION_ROLE: role })).toBeDefined();
});

test("elsewhere, and on an emulator with created tables, only the variable turns sessions on", () => {
  for (const where of [{ environment: "development" as const }, { isChecked: false }]) {
    expect(open({}, where)).toBeUndefined();
    expect(open({ KEELSON_ISOLATION_ROLE: role }, where)).toBeDefined();
  }
});

test("a Lambda function without a role starts, and reaches no rows of tenants", async () => {
  const sessions = open({ AWS_LAMBDA_FUNCTION_NAME: "sweep" });
  await expect(sessions?.open(acrossTag)).rejects.toThrow("isolation: there is no role");
  sessions?.close();
});
