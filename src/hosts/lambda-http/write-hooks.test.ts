import { expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { lambdaEvent, startTestApp } from "../../tools/testing/index.ts";
import { lambdaHttp } from "./http-handler.ts";

declare module "../../base/types/names.ts" {
  interface Writes {
    "frozen.part.create": { input: unknown; accepted: unknown; output: { readonly made: boolean } };
  }
}

test("a function answers before its time is over, even when a hook after its write takes longer", async () => {
  const [begun, ending] = [Promise.withResolvers<unknown>(), Promise.withResolvers<void>()];
  const frozen = defineFeature("frozen", (r) => {
    r.table("parts", { partitionKey: "pk", tenant: false });
    r.write("part.create", {
      route: "POST /parts",
      access: access.everyone,
      handler: async () => ({ made: true }),
    });
    r.hook("frozen.part.create", {
      commit: (_ctx, _input, result) => [
        { Put: { TableName: "keelson-parts", Item: { pk: "1", ...result } } },
      ],
      after: (_ctx, _input, result) => {
        begun.resolve(result);
        return ending.promise;
      },
    });
  });
  const server = buildServer({ features: [frozen] });
  const app = await startTestApp(server);
  const lines: string[] = [];
  vi.spyOn(process.stdout, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  const waits: number[] = [];
  const { setTimeout: original } = globalThis;
  vi.spyOn(globalThis, "setTimeout").mockImplementation((look, ms, ...given) => {
    const isBound = ms === 1_700; // no other wait takes as long
    if (isBound) waits.push(ms);
    return original(look as () => void, isBound ? 0 : ms, ...given);
  });
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(Date, "now").mockReturnValue(Date.now()); // however long it takes to get there
  try {
    const http = lambdaHttp(server);
    const headers = { "idempotency-key": "k1", "content-type": "application/json" };
    const context = { awsRequestId: "a1", getRemainingTimeInMillis: () => 1_900 } as Parameters<
      typeof http
    >[1]; // what is read
    const answer = await http(
      lambdaEvent("httpApi", { method: "POST", path: "/parts", headers, body: "{}" }),
      context,
    );
    expect([answer.statusCode, answer.body]).toEqual([200, JSON.stringify({ made: true })]);
    expect(await begun.promise).toEqual({ made: true });
    expect(waits).toEqual([1_700]);
    expect(lines.join("")).toContain(`"msg":"hook.after_late"`);
  } finally {
    ending.resolve();
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    await app.close();
  }
});
