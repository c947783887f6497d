import httpEventNormalizer from "@middy/http-event-normalizer";
import { expect, test } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { reply } from "../../parts/http/reply.ts";
import type { LambdaHttpEvent } from "./http-events.ts";
import { lambdaHttp } from "./http-handler.ts";

const seen = defineFeature("seen", (r) => {
  r.query("request.show", {
    route: "GET /request",
    access: access.everyone,
    handler: async (ctx, input) => ({ input, headers: ctx.request?.headers }),
  });
  r.write("cookie.set", {
    route: "POST /cookie",
    access: access.everyone,
    handler: async () => reply({}, { cookies: { a: { value: "1" } } }),
  });
});
const build = () =>
  lambdaHttp<LambdaHttpEvent>(buildServer({ features: [seen], log: { level: "error" } }));

async function invoke(event: object, handler = build()) {
  const answer = (await handler(event as LambdaHttpEvent, {} as never)) as {
    statusCode: number;
    body: string;
  };
  return JSON.parse(answer.body);
}

const request = { httpMethod: "GET", path: "/request" };
const balancer = { ...request, requestContext: { elb: {} }, body: "" };
const rest = { ...request, requestContext: { stage: "dev" }, body: null };

test("keeps a load balancer's query despite the empty lists that Middy's event normalizer adds", async () => {
  const event = {
    ...balancer,
    headers: { host: "x" },
    queryStringParameters: { a: "1%2B", b: "2" },
  };

  expect((await invoke(event, build().use(httpEventNormalizer() as never))).input).toEqual({
    a: "1+",
    b: "2",
  });
});

test.each([
  ["no lists", undefined, { a: "1", b: "2" }],
  ["null", null, { a: "1", b: "2" }],
  ["what is no map", "None", { a: "1", b: "2" }],
  ["an empty map", {}, { a: "1", b: "2" }],
  ["empty lists", { a: [], b: [null] }, { a: "1", b: "2" }],
  ["a list of one name", { a: ["0", "1"] }, { a: ["0", "1"], b: "2" }],
  ["a list of another name", { c: ["3"] }, { a: "1", b: "2", c: "3" }],
  ["an empty value in a list", { a: [""] }, { a: "", b: "2" }],
])(
  "merges query parameters by name: with %s",
  async (_name, multiValueQueryStringParameters, input) => {
    for (const event of [balancer, rest]) {
      const given = {
        ...event,
        queryStringParameters: { a: "1", b: "2" },
        multiValueQueryStringParameters,
      };
      expect((await invoke(given)).input).toEqual(input);
    }
  },
);

test.each([
  ["no lists", undefined, { "x-a": "1", "x-b": "2" }],
  ["null", null, { "x-a": "1", "x-b": "2" }],
  ["an empty map", {}, { "x-a": "1", "x-b": "2" }],
  ["empty lists", { "x-a": [], "X-B": [null] }, { "x-a": "1", "x-b": "2" }],
  ["a list of one name", { "x-a": ["0", "1"] }, { "x-a": "0, 1", "x-b": "2" }],
  ["a list of another name", { "X-C": ["3"] }, { "x-a": "1", "x-b": "2", "x-c": "3" }],
  ["an empty value in a list", { "x-a": [""] }, { "x-a": "", "x-b": "2" }],
  [
    "a name in two cases",
    { "X-A": ["0"], "x-a": ["1"], Cookie: ["a=1"], cookie: ["b=2"] },
    { "x-a": "0, 1", cookie: "a=1; b=2" },
  ],
])("merges headers by name: with %s", async (_name, multiValueHeaders, headers) => {
  for (const event of [balancer, rest]) {
    const given = { ...event, headers: { "X-A": "1", "X-B": "2" }, multiValueHeaders };
    expect((await invoke(given)).headers).toMatchObject(headers);
  }
});

test("answers a load balancer with lists only when its event has them", async () => {
  const login = { ...balancer, httpMethod: "POST", path: "/cookie" };
  const answer = async (event: object) =>
    (await build()(event as LambdaHttpEvent, {} as never)) as unknown as Record<string, unknown>;

  for (const multiValueHeaders of [undefined, null, {}]) {
    const { headers, multiValueHeaders: lists } = await answer({
      ...login,
      headers: { host: "x" },
      multiValueHeaders,
    });
    expect([headers, lists]).toEqual([
      expect.objectContaining({ "set-cookie": expect.stringMatching(/^a=1/) }),
      undefined,
    ]);
  }
  for (const headers of [undefined, null, {}]) {
    const { multiValueHeaders } = await answer({
      ...login,
      headers,
      multiValueHeaders: { host: ["x"] },
    });
    expect(multiValueHeaders).toMatchObject({ "set-cookie": [expect.stringMatching(/^a=1/)] });
  }
  expect(await answer({ ...login, headers: null, multiValueHeaders: {} })).toHaveProperty(
    "multiValueHeaders",
  );
});

const twice: [string, string, object][] = [];
for (const [name, value] of [
  ["Host", "x"],
  ["Authorization", "Bearer a"],
] as const) {
  const lists = { [name]: [value, value], "X-Request-ID": ["r1"] };
  const joined = { [name.toLowerCase()]: `${value},${value}`, "x-request-id": "r1" };
  const version2 = {
    version: "2.0",
    rawPath: "/request",
    headers: joined,
    requestContext: { http: { method: "GET" } },
  };
  twice.push(
    [name, "a REST API", { ...rest, headers: { [name]: value }, multiValueHeaders: lists }],
    [
      name,
      "a REST API, in two cases",
      { ...rest, multiValueHeaders: { ...lists, [name]: [value], [name.toLowerCase()]: [value] } },
    ],
    [name, "a load balancer", { ...balancer, multiValueHeaders: lists }],
    [name, "an HTTP API", version2],
  );
}

test.each(twice)(
  "refuses a second %s under the request's own ID: %s",
  async (_name, _trigger, event) => {
    expect(await invoke(event)).toMatchObject({ error: "malformed_request", requestId: "r1" });
  },
);

test("copies an event's headers with lower-case names, whatever their case and number", async () => {
  const api = (headers: object) => ({
    version: "2.0",
    rawPath: "/request",
    headers,
    requestContext: {
      http: { method: "GET" },
      domainName: "x.execute-api.eu-west-1.amazonaws.com",
    },
  });
  const many = Object.fromEntries(
    Array.from({ length: 300 }, (_, index) => [`X-Many-${index}`, `${index}`]),
  );
  const inLowerCase = Object.fromEntries(
    Object.entries(many).map(([name, value]) => [name.toLowerCase(), value]),
  );

  for (const event of [
    api,
    (headers: object) => ({ ...rest, headers }),
    (headers: object) => ({ ...balancer, headers }),
  ]) {
    for (const headers of [
      many,
      inLowerCase,
      { ...inLowerCase, [`X-${"long".repeat(20)}`]: "1" },
    ]) {
      const expected = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
      );
      expect((await invoke(event(headers))).headers).toEqual(expected);
    }
    const odd = JSON.parse('{"__proto__":"a","constructor":"b","x-list":["c"],"x-none":null}');
    const { headers } = await invoke(event(odd));
    expect(Object.entries(headers).toSorted()).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
  }
});

test("accepts a list of values for a header of any name", async () => {
  const multiValueHeaders = JSON.parse('{"__proto__":["a","b"],"x-c":["c"]}');
  const { headers } = await invoke({ ...rest, headers: { "x-a": "1" }, multiValueHeaders });
  expect(Object.entries(headers).toSorted()).toEqual([
    ["__proto__", "a, b"],
    ["x-a", "1"],
    ["x-c", "c"],
  ]);
});

test("a middleware that changes the event's headers does not change the request ID", async () => {
  const event = { ...rest, headers: { "x-request-id": "mine", host: "x" } };
  const before = ({ event: { headers } }: { event: { headers: Record<string, string> } }) => {
    headers["x-request-id"] = "theirs";
  };
  const answer = (await build().use({ before: before as never })(event as never, {} as never)) as {
    headers: Record<string, string>;
  };
  expect(answer.headers["x-request-id"]).toBe("mine");
});
