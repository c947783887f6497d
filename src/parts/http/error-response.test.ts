import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { describeError } from "../../base/errors/describe.ts";
import {
  AccessDeniedError,
  ConflictError,
  errorBrand,
  FrameworkError,
  isTypedError,
  NotFoundError,
  PipelineError,
  ValidationError,
} from "../../base/errors/errors.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { type CorsOptions, corsProblems } from "./cors-options.ts";
import { errorResponse } from "./error-response.ts";

const production = { requestId: "r1", environment: "production" } as const;
const facts = { ...production, accept: undefined, head: false };

describe("an error", () => {
  test.each<[string, unknown, number, string, string, "warn" | "error"]>([
    ["NotFoundError", new NotFoundError("file", "7"), 404, "not_found", "file 7 not found", "warn"],
    [
      "AccessDeniedError",
      new AccessDeniedError("files.delete"),
      403,
      "access_denied",
      "Access denied: files.delete",
      "warn",
    ],
    [
      "ValidationError",
      new ValidationError([{ field: "a", error: "b" }]),
      422,
      "validation_error",
      "Validation failed",
      "warn",
    ],
    [
      "ConflictError",
      new ConflictError("file_locked"),
      409,
      "file_locked",
      "Conflict: file_locked",
      "warn",
    ],
    ["PipelineError", new PipelineError("teapot", 418), 418, "pipeline_error", "teapot", "warn"],
    [
      "PipelineError of 503",
      new PipelineError("later", 503),
      503,
      "pipeline_error",
      "later",
      "error",
    ],
    [
      "FrameworkError",
      new FrameworkError("timeout", "too late"),
      504,
      "timeout",
      "too late",
      "error",
    ],
    [
      "an unknown error",
      new Error("secret"),
      500,
      "internal_error",
      "Internal server error",
      "error",
    ],
    ["a thrown string", "secret", 500, "internal_error", "Internal server error", "error"],
    ["undefined", undefined, 500, "internal_error", "Internal server error", "error"],
  ])(
    "%s gives its status, code, message and log level",
    (_name, error, status, code, message, level) => {
      const description = describeError(error, production);

      expect(description).toMatchObject({
        status,
        body: { error: code, message, requestId: "r1" },
        log: { level },
      });
      expect(JSON.stringify(description.body)).not.toContain("secret");
      expect(JSON.stringify(description.body)).not.toContain("stack");
      expect("stack" in description.log.data).toBe(level === "error" && error instanceof Error);
    },
  );

  test("shows its stack to the client only in development", () => {
    expect(
      describeError(new Error("x"), { requestId: "r", environment: "development" }).body.stack,
    ).toContain("error-response.test");
    expect(
      describeError(new Error("x"), { requestId: "r", environment: "test" }).body.stack,
    ).toBeUndefined();
  });

  test("has fields only if it is a validation error", () => {
    expect(
      describeError(new ValidationError([{ field: "a", error: "b" }]), production).body.fields,
    ).toEqual([{ field: "a", error: "b" }]);
    expect("fields" in describeError(new NotFoundError("a", "b"), production).body).toBe(false);
  });

  test("is logged with its chain of causes, which is bounded and stops at a cycle", () => {
    const root = new TypeError("root");
    const chain = new PipelineError("outer", 502, { cause: new Error("middle", { cause: root }) });
    root.cause = chain;
    const { causes } = describeError(chain, production).log.data as {
      causes: { name: string; message: string; stack: string }[];
    };

    expect(causes.map(({ name, message }) => `${name} ${message}`)).toEqual([
      "Error middle",
      "TypeError root",
    ]);
    expect(causes[0]?.stack).toContain("error-response.test");

    let long: unknown = "end";
    for (let index = 0; index < 50; index++) long = new Error(`${index}`, { cause: long });
    expect(describeError(long, production).log.data["causes"]).toHaveLength(10);
    expect(describeError(new Error("x", { cause: 7 }), production).log.data["causes"]).toEqual([
      { message: "thrown number: 7" },
    ]);
  });

  test("from another copy of the package is recognised by its brand", () => {
    const foreign = Object.assign(new Error("file 7 not found"), {
      status: 404,
      code: "not_found",
      [errorBrand]: true,
    });

    expect(isTypedError(foreign)).toBe(true);
    expect(describeError(foreign, production)).toMatchObject({
      status: 404,
      body: { error: "not_found" },
    });
  });

  test.each<[string, Record<PropertyKey, unknown>]>([
    ["a status out of range", { status: 200, code: "x", message: "m" }],
    ["a status that is no number", { status: "404", code: "x", message: "m" }],
    ["a code that is no text", { status: 404, code: 7, message: "m" }],
    ["a message that is no text", { status: 404, code: "x", message: {} }],
  ])("with the brand and %s is an internal error", (_name, members) => {
    expect(describeError({ ...members, [errorBrand]: true }, production).status).toBe(500);
  });

  test("with malformed fields and headers keeps the valid ones", () => {
    const strange = {
      [errorBrand]: true,
      status: 422,
      code: "validation_error",
      message: "m",
      fields: [undefined, { field: 7 }],
      headers: { a: "b\r\nc", "x y": "1", ok: "1", n: 1 },
    };
    const { body, headers } = describeError(strange, production);

    expect(body.fields).toEqual([
      { field: "undefined", error: "undefined" },
      { field: "7", error: "undefined" },
    ]);
    expect(headers).toEqual({ ok: "1" });
    expect(describeError({ ...strange, fields: 7, headers: 7 }, production)).toMatchObject({
      headers: {},
    });
  });

  test("that throws on every access is still described", () => {
    const hostile = new Proxy(new Error("x"), {
      get: () => {
        throw new Error("no");
      },
      getPrototypeOf: () => {
        throw new Error("no");
      },
      has: () => {
        throw new Error("no");
      },
    });
    const unprintable = Object.create(null);

    expect(describeError(hostile, production).status).toBe(500);
    expect(describeError(unprintable, production).log.data["message"]).toBe("thrown object");
    expect(describeError(new Error("m".repeat(3_000)), production).log.data["message"]).toMatch(
      /1000 more\)$/,
    );
  });

  test("with the brand and arbitrary members is described, and its response is JSON", () => {
    const anything = fc.anything({
      withBigInt: true,
      withNullPrototype: true,
      withSparseArray: true,
      withObjectString: true,
    });
    const anyText = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) });
    const lookAlike = fc.record(
      {
        status: fc.oneof(fc.integer({ min: 400, max: 599 }), anything),
        code: fc.oneof(anyText, anything),
        message: fc.oneof(anyText, anything),
        headers: fc.oneof(fc.dictionary(fc.string(), anything), anything),
        fields: fc.oneof(fc.array(anything), anything),
        cause: anything,
        stack: anything,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(lookAlike, (members) => {
        const { response } = errorResponse({ ...members, [errorBrand]: true }, facts);
        const body = JSON.parse(String(response.body));

        expect(response.status).toBeGreaterThanOrEqual(400);
        expect(response.status).toBeLessThanOrEqual(599);
        expect(body).toMatchObject({
          error: expect.any(String),
          message: expect.any(String),
          requestId: "r1",
        });
      }),
      { numRuns: 500 },
    );
  });

  test("whose field list has its own methods still gives its fields", () => {
    const fields = Object.assign([{ field: "a", error: "b" }], {
      slice: () => [1n],
      map: () => 1n,
    });
    const lookAlike = {
      [errorBrand]: true,
      status: 422,
      code: "validation_error",
      message: "m",
      fields,
    };

    expect(describeError(lookAlike, production).body.fields).toEqual([{ field: "a", error: "b" }]);
  });

  test("with a thousand fields gives the first hundred, truncated", () => {
    const fields = Array.from({ length: 1_000 }, () => ({
      field: "f".repeat(1_000),
      error: "e".repeat(1_000),
    }));
    const described = describeError(new ValidationError(fields), production).body.fields;

    expect(described).toHaveLength(100);
    expect(described?.[0]?.field).toMatch(/^f{200}… \(800 more\)$/);
    expect(described?.[0]?.error).toMatch(/^e{500}… \(500 more\)$/);
  });

  test("of any thrown value is described", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withNullPrototype: true,
          withSparseArray: true,
          withObjectString: true,
        }),
        (thrown) => {
          expect(describeError(thrown, production).body).toEqual({
            error: "internal_error",
            message: "Internal server error",
            requestId: "r1",
          });
        },
      ),
    );
  });

  test("cannot be created with an invalid status, and its message is kept", () => {
    expect(() => new PipelineError("why", 200)).toThrow(/status 200 .*why/);
    expect(() => new PipelineError("why", 404.5)).toThrow(RangeError);
  });
});

describe("the error response", () => {
  test("is JSON with its length and the error's headers, and varies on Accept", () => {
    const error = new FrameworkError("method_not_allowed", "no", { headers: { allow: "GET" } });
    const { response } = errorResponse(error, facts);

    expect(response.headers).toEqual({
      allow: "GET",
      "content-type": "application/json; charset=utf-8",
      "content-length": String(response.body?.toString().length),
      vary: "Accept",
    });
    expect(errorResponse(error, { ...facts, head: true }).response.body).toBeUndefined();
  });

  test("ignores error headers reserved for the framework, and merges Vary", () => {
    const headers = {
      "Set-Cookie": "a=1",
      "transfer-encoding": "chunked",
      connection: "close",
      "content-length": "1",
      "x-request-id": "mine",
      "content-type": "text/html",
      vary: "Cookie",
      "retry-after": "5",
    };
    const { response } = errorResponse(new PipelineError("later", 503, { headers }), facts);

    expect(response.headers).toEqual({
      "content-type": "application/json; charset=utf-8",
      "content-length": String(response.body?.toString().length),
      vary: "Accept, Cookie",
      "retry-after": "5",
    });
  });

  test("titles an application's error with the status phrase in problem+json, or with its code if there is none", () => {
    const accept = "application/problem+json";
    const title = (error: unknown) =>
      JSON.parse(String(errorResponse(error, { ...facts, accept }).response.body)).title;

    expect(title(new PipelineError("busy", 503))).toBe("Service Unavailable");
    expect(title(new PipelineError("odd", 599))).toBe("pipeline_error");
  });

  test.each([
    ["application/problem+json", true],
    ["text/html, Application/Problem+JSON;q=0.5", true],
    ["application/problem+json;q=0", false],
    ["application/problem+json; q=0.00", false],
    ["application/json", false],
    ["*/*", false],
    [undefined, false],
  ])("with Accept %s is problem+json: %s", (accept, isProblem) => {
    const { headers, body } = errorResponse(new NotFoundError("file", "7"), {
      ...facts,
      accept,
    }).response;

    expect(headers["content-type"]?.startsWith("application/problem+json")).toBe(isProblem);
    expect(JSON.parse(String(body))).toEqual({
      error: "not_found",
      message: "file 7 not found",
      requestId: "r1",
      ...(isProblem
        ? {
            type: "https://unpkg.com/keelson/docs/errors.md#not_found",
            title: "Not found",
            status: 404,
            detail: "file 7 not found",
          }
        : {}),
    });
  });

  test.each([
    [new ConflictError("file_locked"), "Conflict"],
    [new ConflictError("timeout"), "Conflict"], // of an application's own, though its name is one of keelson's
    [new PipelineError("Rebuilding", 503), "Service Unavailable"],
    [new PipelineError("?", 599, { code: "odd" }), "odd"],
  ])("gives an application's problem the type about:blank", (error, title) => {
    const { body } = errorResponse(error, {
      ...facts,
      accept: "application/problem+json",
    }).response;

    expect(JSON.parse(String(body))).toMatchObject({
      type: "about:blank",
      title,
      status: error.status,
    });
  });
});

describe("CORS", () => {
  const cors = { origins: ["https://app.example.com"], credentials: true };

  test("allows only a listed origin, and varies on Origin in either case", () => {
    expect(corsHeaders(cors, { origin: "https://app.example.com" })).toEqual({
      vary: "Origin",
      "access-control-allow-origin": "https://app.example.com",
      "access-control-allow-credentials": "true",
      "access-control-expose-headers": "X-Request-ID, Idempotent-Replayed, Retry-After",
    });
    expect(corsHeaders(cors, { origin: "https://evil.example.com" })).toEqual({ vary: "Origin" });
    expect(corsHeaders(cors, {})).toEqual({ vary: "Origin" });
    expect(corsHeaders({ origins: "*" }, { origin: "https://x.example.com" })).toMatchObject({
      "access-control-allow-origin": "*",
    });
    expect(corsHeaders({ origins: "*" }, {})).toEqual({});
  });

  test("answers a valid preflight with methods and headers, and ignores an invalid one", () => {
    const asked = { origin: "https://app.example.com", "access-control-request-method": "PUT" };

    expect(preflight(cors, asked, "GET, PUT")).toMatchObject({
      "access-control-allow-methods": "GET, PUT",
      "access-control-max-age": "600",
    });
    expect(preflight({ origins: "*", maxAgeSeconds: 5 }, asked, "GET")).toMatchObject({
      "access-control-max-age": "5",
    });
    expect(
      preflight(cors, { ...asked, origin: "https://evil.example.com" }, "GET"),
    ).toBeUndefined();
    expect(preflight(cors, { origin: asked.origin }, "GET")).toBeUndefined();
    expect(preflight(cors, { "access-control-request-method": "PUT" }, "GET")).toBeUndefined();
  });

  test("allows and exposes additional or all headers besides keelson's own", () => {
    const asked = { origin: "https://app.example.com", "access-control-request-method": "PUT" };
    const allowedBy = (more: Partial<CorsOptions>) =>
      preflight({ ...cors, ...more }, asked, "PUT")?.["access-control-allow-headers"];
    const exposedBy = (more: Partial<CorsOptions>) =>
      corsHeaders({ ...cors, ...more }, asked)["access-control-expose-headers"];
    const allowed =
      "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-ID, Traceparent";
    const exposed = "X-Request-ID, Idempotent-Replayed, Retry-After";

    expect([allowedBy({}), allowedBy({ allowedHeaders: [] })]).toEqual([allowed, allowed]);
    expect(allowedBy({ allowedHeaders: ["X-Client", "If-Match"] })).toBe(
      `${allowed}, X-Client, If-Match`,
    );
    expect(allowedBy({ allowedHeaders: "*" })).toBe(`${allowed}, *`);
    expect([exposedBy({}), exposedBy({ exposedHeaders: ["ETag", "Link"] })]).toEqual([
      exposed,
      `${exposed}, ETag, Link`,
    ]);
    expect(exposedBy({ exposedHeaders: "*" })).toBe(`${exposed}, *`);
    const sound = { origins: "*", allowedHeaders: "*", exposedHeaders: ["ETag"] };
    expect(corsProblems(sound)).toEqual([]);
  });

  test.each([
    [{ origins: "*", allowedHeaders: "X-Client" }, "cors-headers"],
    [{ origins: "*", allowedHeaders: ["*"] }, "cors-headers"],
    [{ origins: "*", allowedHeaders: [""] }, "cors-headers"],
    [{ origins: "*", exposedHeaders: ["ETag, Link"] }, "cors-headers"],
    [{ origins: "*", exposedHeaders: [7] }, "cors-headers"],
    [{ origins: [], credentials: true, allowedHeaders: "*" }, "cors-headers"],
    [{ origins: [], credentials: true, exposedHeaders: "*" }, "cors-headers"],
    [{ origins: "*", credentials: true }, "cors-credentials"],
    [{ origins: ["https://a.example.com/path"] }, "cors-origins"],
    [{ origins: ["nonsense"] }, "cors-origins"],
    [{ origins: [7] }, "cors-origins"],
    [{ origins: ["*"] }, "cors-origins"],
    [{ origins: ["https://A.example.com"] }, "cors-origins"],
    [{}, "cors-origins"],
    [{ origins: "*", credentials: 1 }, "cors-credentials"],
    [{ origins: "*", maxAgeSeconds: -1 }, "cors-max-age"],
    [{ origins: "*", methods: [] }, "unknown-option"],
    [7, "cors"],
    [null, "cors"],
  ])("reports the options %j as a boot problem", (options, rule) => {
    expect(corsProblems(options)).toMatchObject([{ rule }]);
  });

  test("names each invalid origin", () => {
    const problems = corsProblems({
      origins: ["https://a.example.com", "https://b.example.com/", 7],
    });

    expect(problems.map(({ message }) => message)).toEqual([
      '`origins` has "https://b.example.com/", which is not an origin',
      "`origins` has 7, which is not an origin",
    ]);
  });

  test("reports no problem for valid options", () => {
    expect(corsProblems({ ...cors, maxAgeSeconds: 0 })).toEqual([]);
  });
});
