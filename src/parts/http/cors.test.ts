import { describe, expect, test } from "vitest";
import { corsHeaders, preflight } from "./cors.ts";
import { corsProblems } from "./cors-options.ts";

const origin = "https://app.example.com";

describe("corsProblems", () => {
  test.each<[string, unknown]>([
    ["a list of origins", { origins: [origin, "http://localhost:3000"] }],
    ["every origin", { origins: "*" }],
    ["credentials with listed origins", { origins: [origin], credentials: true }],
    ["every origin without credentials", { origins: "*", credentials: false }],
    ["listed headers", { origins: "*", allowedHeaders: ["X-Version"], exposedHeaders: ["ETag"] }],
    ["every header", { origins: "*", allowedHeaders: "*", exposedHeaders: "*" }],
    ["no caching", { origins: "*", maxAgeSeconds: 0 }],
    ["undefined options", { origins: "*", credentials: undefined, maxAgeSeconds: undefined }],
  ])("accepts %s", (_what, options) => {
    expect(corsProblems(options)).toEqual([]);
  });

  const fixOrigins = 'list them as ["https://app.example.com"], in lower case, without a path';
  const fixHeaders = 'list names such as ["X-Client-Version"], or pass only "*"';
  test.each<[unknown, [rule: string, message: string, fix: string]]>([
    [null, ["cors", "`cors` is not an object", "pass { origins: [...] }"]],
    ["*", ["cors", "`cors` is not an object", "pass { origins: [...] }"]],
    [
      { origins: "*", origin: "*" },
      [
        "unknown-option",
        'unknown option "origin"',
        "known are origins, credentials, allowedHeaders, exposedHeaders, maxAgeSeconds",
      ],
    ],
    [{}, ["cors-origins", "`origins` is not a list of origins", fixOrigins]],
    [{ origins: origin }, ["cors-origins", "`origins` is not a list of origins", fixOrigins]],
    [
      { origins: [`${origin}/`] },
      ["cors-origins", `\`origins\` has "${origin}/", which is not an origin`, fixOrigins],
    ],
    [
      { origins: [origin, "app.example.com"] },
      ["cors-origins", '`origins` has "app.example.com", which is not an origin', fixOrigins],
    ],
    [{ origins: [7] }, ["cors-origins", "`origins` has 7, which is not an origin", fixOrigins]],
    [
      { origins: ["x".repeat(201)] },
      ["cors-origins", `\`origins\` has "${"x".repeat(200)}", which is not an origin`, fixOrigins],
    ],
    [
      { origins: [origin], credentials: "yes" },
      ["cors-credentials", "`credentials` is not a boolean", "use true or false"],
    ],
    [
      { origins: "*", credentials: true },
      [
        "cors-credentials",
        "`credentials` with every origin would let any site act for a user",
        "list the origins",
      ],
    ],
    [
      { origins: [origin], credentials: true, allowedHeaders: "*" },
      [
        "cors-headers",
        '`allowedHeaders` is "*" with `credentials`, which browsers treat as a header of that name',
        "list the headers",
      ],
    ],
    [
      { origins: "*", exposedHeaders: "ETag" },
      ["cors-headers", "`exposedHeaders` is not a list of header names", fixHeaders],
    ],
    [
      { origins: "*", allowedHeaders: ["X-Version", "a b"] },
      ["cors-headers", '`allowedHeaders` has "a b", which is not a header name', fixHeaders],
    ],
    [
      { origins: "*", allowedHeaders: ["*"] },
      ["cors-headers", '`allowedHeaders` has "*", which is not a header name', fixHeaders],
    ],
    [
      { origins: "*", allowedHeaders: [" a"] },
      ["cors-headers", '`allowedHeaders` has " a", which is not a header name', fixHeaders],
    ],
    [
      { origins: "*", allowedHeaders: [undefined] },
      [
        "cors-headers",
        "`allowedHeaders` has a value of type undefined, which is not a header name",
        fixHeaders,
      ],
    ],
    ...[-1, 0.5, "600"].map((maxAgeSeconds): [unknown, [string, string, string]] => [
      { origins: "*", maxAgeSeconds },
      ["cors-max-age", "`maxAgeSeconds` is not a whole number", "use seconds, 600 for example"],
    ]),
  ])("reports the problem of %j", (options, [rule, message, fix]) => {
    expect(corsProblems(options)).toEqual([{ rule, message, fix }]);
  });

  test("returns all problems at once", () => {
    const options = { origins: 1, credentials: 1, allowedHeaders: 1, maxAgeSeconds: "1", more: 1 };
    expect(corsProblems(options).map(({ rule }) => rule)).toEqual([
      "unknown-option",
      "cors-origins",
      "cors-credentials",
      "cors-headers",
      "cors-max-age",
    ]);
  });
});

describe("corsHeaders", () => {
  const exposed = "X-Request-ID, Idempotent-Replayed, Retry-After";

  test("adds only Vary for a request without an allowed origin", () => {
    expect(corsHeaders({ origins: [origin] }, {})).toEqual({ vary: "Origin" });
    expect(corsHeaders({ origins: [origin] }, { origin: "https://evil.example" })).toEqual({
      vary: "Origin",
    });
    expect(corsHeaders({ origins: "*" }, {})).toEqual({});
  });

  test("allows a listed origin, with credentials and exposed headers", () => {
    const options = { origins: [origin], credentials: true, exposedHeaders: ["ETag", "Link"] };
    expect(corsHeaders(options, { origin })).toEqual({
      vary: "Origin",
      "access-control-allow-origin": origin,
      "access-control-allow-credentials": "true",
      "access-control-expose-headers": `${exposed}, ETag, Link`,
    });
  });

  test('allows every origin when origins is "*"', () => {
    expect(corsHeaders({ origins: "*", exposedHeaders: "*" }, { origin })).toEqual({
      "access-control-allow-origin": "*",
      "access-control-expose-headers": `${exposed}, *`,
    });
  });
});

describe("preflight", () => {
  const asks = { origin, "access-control-request-method": "PUT" };
  const allowed =
    "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-ID, Traceparent";

  test.each([
    ["no origin", { origins: "*" as const }, { "access-control-request-method": "PUT" }],
    ["no requested method", { origins: [origin] }, { origin }],
    ["another origin", { origins: ["https://other.example"] }, asks],
  ])("returns undefined for %s", (_what, options, headers) => {
    expect(preflight(options, headers, "GET, PUT")).toBeUndefined();
  });

  test("allows the methods of the path and the usual headers for ten minutes", () => {
    const headers = {
      "access-control-allow-methods": "GET, PUT",
      "access-control-allow-headers": allowed,
      "access-control-max-age": "600",
    };
    expect(preflight({ origins: [origin] }, asks, "GET, PUT")).toEqual(headers);
    expect(preflight({ origins: "*" }, asks, "GET, PUT")).toEqual(headers);
  });

  test("allows the headers and the max age of its options", () => {
    const options = {
      origins: [origin],
      allowedHeaders: ["X-Version", "If-Match"],
      maxAgeSeconds: 5,
    };
    expect(preflight(options, asks, "PUT")).toEqual({
      "access-control-allow-methods": "PUT",
      "access-control-allow-headers": `${allowed}, X-Version, If-Match`,
      "access-control-max-age": "5",
    });
  });
});
