import middy from "@middy/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, type Server, serverInternals } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { lambdaOutbox, lambdaQueue, lambdaSchedule, lambdaSweep } from "../lambda/workers.ts";
import { requestScope } from "../middy/request-scope.ts";
import { lambdaHandler, lambdaHttp } from "./http-handler.ts";

const chatty = defineFeature("chatty", (r) => {
  r.query("word.say", {
    route: "GET /word",
    access: access.everyone,
    handler: async (ctx) => {
      ctx.log.debug("said");
      return {};
    },
  });
});

const path = "/word";
const event = {
  version: "2.0",
  rawPath: path,
  rawQueryString: "",
  headers: {},
  requestContext: { http: { method: "GET", path, sourceIp: "192.0.2.1" }, stage: "$default" },
  isBase64Encoded: false,
};

type Invoke = (event: unknown, context: unknown) => unknown;

/** Every kind of function, and an event of its own. */
const kinds: readonly (readonly [
  name: string,
  make: (server: Server) => unknown,
  event: unknown,
])[] = [
  ["lambdaHttp", lambdaHttp, event],
  ["lambdaHandler", (server) => lambdaHandler(server, "chatty.word.say"), event],
  ["lambdaQueue", lambdaQueue, { Records: [] }],
  ["lambdaOutbox", lambdaOutbox, { Records: [] }],
  ["lambdaSchedule", lambdaSchedule, {}],
  ["lambdaSweep", lambdaSweep, {}],
  [
    "requestScope",
    (server) =>
      middy({
        executionMode: requestScope(server, {
          handler: "legacy.word.say",
          access: access.everyone,
        }),
      }).handler((async () => ({})) as never),
    event,
  ],
];

let lines: Record<string, unknown>[];

beforeEach(() => {
  lines = [];
  vi.spyOn(process.stdout, "write").mockImplementation(
    (line) => lines.push(JSON.parse(String(line))) > 0,
  );
  vi.stubEnv("AWS_REGION", "us-east-1");
  vi.stubEnv("AWS_ENDPOINT_URL", "http://127.0.0.1:9"); // nobody listens: what is asked there fails
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  vi.stubEnv("AWS_MAX_ATTEMPTS", "1");
  vi.stubEnv("KEELSON_AUTH_SECRET", "");
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test.each(kinds)(
  "each invocation of %s decides once whether it is sampled",
  async (_name, make, given) => {
    vi.stubEnv("POWERTOOLS_LOGGER_SAMPLE_RATE", "0.5");
    const server = buildServer({ features: [chatty] });
    const invoke = make(server) as Invoke;
    const invoked = async () => invoke(structuredClone(given), {});
    await invoked().catch(() => undefined);
    // Safe: an invocation has bound one.
    const { log } = serverInternals(server).runtime as NonNullable<
      ReturnType<typeof serverInternals>["runtime"]
    >;
    const refresh = vi.spyOn(log, "refreshSampling");
    for (const times of [1, 2]) {
      await invoked().catch(() => undefined);
      expect(refresh).toHaveBeenCalledTimes(times);
    }
  },
);

test.each([
  ["1", 1],
  ["0", 0],
])("a function samples at the rate of POWERTOOLS_LOGGER_SAMPLE_RATE: %s", async (rate, count) => {
  vi.stubEnv("POWERTOOLS_LOGGER_SAMPLE_RATE", rate);
  const invoke = lambdaHttp(
    buildServer({ features: [chatty], environment: "production" }),
  ) as Invoke;
  expect(await invoke(event, {})).toMatchObject({ statusCode: 200 });
  expect(lines.filter(({ msg }) => msg === "said")).toHaveLength(count);
});
