// own process: it replaces a global
import { parseList } from "structured-headers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { invokeStreaming, streamingRuntime } from "../../../test/support/lambda-stream.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import {
  lambdaContext,
  lambdaEvent,
  startTestApp,
  type TestApp,
} from "../../tools/testing/index.ts";
import { lambdaHttp } from "./http-handler.ts";

let validated = 0;
const body = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value: unknown) => {
      validated += 1;
      return { value };
    },
  },
} as const;
const notes = defineFeature("notes", (r) => {
  const rateLimit = { per: "ip", requests: 2, window: "day" } as const;
  const route = { access: access.everyone, rateLimit };
  r.write("note.add", {
    ...route,
    route: "POST /notes",
    input: body,
    handler: async () => ({ id: "1" }),
  });
});
const server = () => buildServer({ features: [notes], log: { level: "error" } });

let app: TestApp;
beforeEach(async () => {
  app = await startTestApp(server());
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.stubGlobal("awslambda", streamingRuntime);
  validated = 0;
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  await app.close();
});

interface Answer {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Written {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly multiValueHeaders?: Readonly<Record<string, readonly unknown[]>>;
  readonly body?: string;
}

function answerOf({ statusCode, headers, multiValueHeaders = {}, body = "" }: Written): Answer {
  const named = Object.entries(headers ?? multiValueHeaders);
  const fields = named.map(([name, value]) => [name.toLowerCase(), [value].flat().join(", ")]);
  return { status: statusCode, fields: Object.fromEntries(fields), body };
}

type Ask = (sent: string) => Promise<Answer>;
const requestOf = (sent: string) => ({
  ...{ method: "POST", path: "/notes", body: sent, ip: "203.0.113.9", stage: "dev" },
  headers: { "content-type": "application/json" },
});
const triggers = [
  "restApi",
  "httpApi",
  "functionUrl",
  "loadBalancer",
  "loadBalancerMultiValue",
] as const;
const fronts: readonly (readonly [string, () => Ask])[] = [
  ...triggers.map((trigger) => {
    const start = (): Ask => {
      const handler = lambdaHttp(server());
      return async (sent) => {
        const event = lambdaEvent(trigger, requestOf(sent));
        // Safe cast: the parts that all formats have.
        return answerOf((await handler(event as never, lambdaContext())) as Written);
      };
    };
    return [trigger, start] as const;
  }),
  ...(["restApi", "functionUrl"] as const).map((trigger) => {
    const start = (): Ask => {
      const handler = lambdaHttp(server(), { stream: true });
      return async (sent) => {
        const event = lambdaEvent(trigger, requestOf(sent));
        const { prelude, body } = await (await invokeStreaming(handler, event)).response;
        return answerOf({ ...(prelude as unknown as Written), body: body.toString() }); // safe: a response has one
      };
    };
    return [`${trigger}, streamed`, start] as const;
  }),
];

test.each(fronts)(
  "a limit answers through %s, before the body is parsed, with fields that parse",
  async (_name, start) => {
    const ask = start();
    const listed = ({ fields }: Answer, name: string) =>
      parseList(fields[name] ?? "").map(([item, parameters]) => [
        item,
        Object.fromEntries(parameters),
      ]);
    for (const r of [1, 0]) {
      const admitted = await ask("{}");
      expect(admitted.status).toBe(200);
      expect(listed(admitted, "ratelimit-policy")).toEqual([["ip-day", { q: 2, w: 86_400 }]]);
      expect(listed(admitted, "ratelimit")).toEqual([["ip-day", { r, t: expect.any(Number) }]]);
    }
    // Would be 400 if the body were parsed.
    const refused = await ask("{ no JSON");
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toMatchObject({ error: "too_many_requests" });
    expect(listed(refused, "ratelimit-policy")).toEqual([["ip-day", { q: 2, w: 86_400 }]]);
    const t = Number(/;t=(\d+)$/.exec(refused.fields["ratelimit"] ?? "")?.[1]);
    expect(listed(refused, "ratelimit")).toEqual([["ip-day", { r: 0, t }]]);
    expect(Number(refused.fields["retry-after"])).toBeGreaterThanOrEqual(t);
    expect(validated).toBe(2);
  },
);
