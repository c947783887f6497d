import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { conflicts, type ParsedRoute, parseRoute, reservedPath } from "./route.ts";
import { createRouteTable } from "./route-table.ts";

const route = (text: string): ParsedRoute => {
  const parsed = parseRoute(text);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed;
};
const entries = (...texts: string[]) => texts.map((text) => ({ route: route(text), target: text }));
const table = (...texts: string[]) => createRouteTable(entries(...texts));

const files = table(
  "GET /files",
  "POST /files",
  "GET /files/quota",
  "GET /files/:id",
  "DELETE /files/:id",
  "GET /files/:id/download-url",
  "GET /",
);

describe("a route", () => {
  test("is parsed into its method and segments", () => {
    expect(parseRoute("GET /files/:id")).toEqual({
      method: "GET",
      segments: [{ static: "files" }, { param: "id" }],
      pattern: "/files/:id",
    });
    expect(parseRoute("POST /")).toMatchObject({ segments: [] });
  });

  test.each([
    ["get /files"],
    ["HEAD /files"],
    ["GET files"],
    ["GET  /files"],
    ["GET /files/"],
    ["GET //files"],
    ["GET /files/:"],
    ["GET /files/:1"],
    ["GET /files/:1a"],
    ["GET /files/:a-b"],
    ["GET /files/:id/:id"],
    ["GET /files/*"],
    ["GET /files/."],
    ["GET /files/.."],
    ["GET /fi%20les"],
    ["GET /files?x=1"],
    ["GET /files x"],
    ["XGET /files"],
    [""],
    [undefined],
    [7],
    [{}],
    [["GET /files"]],
  ])("%j is refused with a fix", (text) => {
    expect(parseRoute(text as string)).toEqual({
      problem: expect.any(String),
      fix: expect.stringMatching(/\w+ \w+/),
    });
  });

  test.each<[unknown, string]>([
    ["files", 'route "files" is not "<METHOD> /<path>"'],
    [7, 'route of type number is not "<METHOD> /<path>"'],
    ["x".repeat(1_000), `route "${"x".repeat(200)}" is not "<METHOD> /<path>"`],
    ["GET /files/", 'route "GET /files/" has an empty segment'],
    ["GET /files/*", 'route "GET /files/*" has the segment "*"'],
    ["GET /files/:1", 'route "GET /files/:1" has the parameter ":1"'],
    ["GET /files/:id/:id", 'route "GET /files/:id/:id" has the parameter :id twice'],
  ])("%.30j is refused with its problem", (text, problem) => {
    expect(parseRoute(text as string)).toMatchObject({ problem });
  });

  test("under keelson's own paths is reserved, but not under similar paths", () => {
    expect(
      [
        "/config",
        "/config/x",
        "/log",
        "/settings",
        "/health/ready",
        "/metrics",
        "/openapi.json",
      ].every(reservedPath),
    ).toBe(true);
    expect(["/configs", "/logs", "/files/config", "/", "", "config"].some(reservedPath)).toBe(
      false,
    );
  });
});

describe("a route table", () => {
  test.each([
    ["GET", "/files", "GET /files", {}],
    ["GET", "/files/quota", "GET /files/quota", {}],
    ["GET", "/files/quota/download-url", "GET /files/:id/download-url", { id: "quota" }],
    ["GET", "/files/7", "GET /files/:id", { id: "7" }],
    ["GET", "/files/a%2Fb", "GET /files/:id", { id: "a/b" }],
    ["GET", "/files/%2525", "GET /files/:id", { id: "%25" }],
    ["GET", "/files/__proto__", "GET /files/:id", { id: "__proto__" }],
    ["GET", "/fil%65s", "GET /files", {}],
    ["GET", "/files/:id", "GET /files/:id", { id: ":id" }],
    ["GET", "/files/.well-known", "GET /files/:id", { id: ".well-known" }],
    ["GET", "/files/.x.", "GET /files/:id", { id: ".x." }],
    ["GET", "/files/...", "GET /files/:id", { id: "..." }],
    ["GET", "/", "GET /", {}],
  ])("routes %s %s to %s", (method, path, target, params) => {
    expect(files.match(method, path)).toEqual({
      kind: "found",
      target,
      params: Object.assign(Object.create(null), params),
      head: false,
    });
  });

  test.each([
    "/files/",
    "//files",
    "/files//7",
    "/files/./7",
    "/files/%2e%2E",
    "/files/..",
    "/nowhere",
    "files",
    "*",
    "",
    "/files/7/download-url/x",
  ])("finds no route for %s", (path) => {
    expect(files.match("GET", path)).toEqual({ kind: "not-found" });
  });

  test.each(["/files/%", "/files/%zz", "/files/%ff", "/files/%c0%ae", `/${"x".repeat(8_192)}`])(
    "reports %.20s as malformed",
    (path) => {
      expect(files.match("GET", path)).toMatchObject({ kind: "malformed" });
    },
  );

  test("accepts paths of up to 8192 characters, and says why a path is malformed", () => {
    const longest = `/${"x".repeat(8_191)}`;
    expect(files.match("GET", longest)).toEqual({ kind: "not-found" });
    expect(files.match("GET", `${longest}x`)).toMatchObject({
      message: "The path is longer than 8192 characters",
    });
    expect(files.match("GET", "/files/%zz")).toMatchObject({
      message: "The path has malformed percent-encoding",
    });
  });

  test("matches nothing at a path that is only the prefix of routes, for any method", () => {
    const deep = table("GET /files/all/new");
    for (const method of ["GET", "PUT", "OPTIONS"])
      expect(deep.match(method, "/files/all")).toEqual({ kind: "not-found" });
  });

  test("answers HEAD with the GET route", () => {
    expect(files.match("HEAD", "/")).toMatchObject({ kind: "found", target: "GET /", head: true });
    expect(files.match("HEAD", "/files")).toMatchObject({
      kind: "found",
      target: "GET /files",
      head: true,
    });
  });

  test("lists the allowed methods in sorted order for OPTIONS and unsupported methods", () => {
    expect(files.match("OPTIONS", "/files/7")).toEqual({
      kind: "options",
      allow: "DELETE, GET, HEAD, OPTIONS",
    });
    expect(files.match("PUT", "/files")).toEqual({
      kind: "method-not-allowed",
      allow: "GET, HEAD, OPTIONS, POST",
    });
    expect(table("POST /jobs").match("GET", "/jobs")).toEqual({
      kind: "method-not-allowed",
      allow: "OPTIONS, POST",
    });
    expect(files.match("get", "/files")).toMatchObject({ kind: "method-not-allowed" });
    expect(files.match("CONNECT", "/files")).toMatchObject({ kind: "method-not-allowed" });
    expect(files.match("OPTIONS", "/nowhere")).toEqual({ kind: "not-found" });
  });

  test("answers OPTIONS * for all routes under any base path, and no other method with *", () => {
    expect(files.match("OPTIONS", "*", "/api")).toEqual({
      kind: "options",
      allow: "DELETE, GET, HEAD, OPTIONS, POST",
    });
    expect(table().match("OPTIONS", "*")).toEqual({ kind: "options", allow: "OPTIONS" });
    expect(files.match("GET", "*").kind).toBe("not-found");
  });

  test("matches only paths under the base path", () => {
    expect(files.match("GET", "/api/files", "/api")).toMatchObject({
      kind: "found",
      target: "GET /files",
    });
    expect(files.match("GET", "/api", "/api")).toMatchObject({ kind: "found", target: "GET /" });
    expect(files.match("GET", "/files", "/api")).toEqual({ kind: "not-found" });
    expect(files.match("GET", "/apifiles", "/api")).toEqual({ kind: "not-found" });
  });

  test("gives priority to the first of two equal routes, and reports the pair as a conflict", () => {
    const pair = entries("GET /a/:x", "GET /a/:y", "POST /a/:x", "GET /a/x");

    expect(createRouteTable(pair).match("GET", "/a/1")).toMatchObject({ target: "GET /a/:x" });
    expect(conflicts(pair).map(({ first, second }) => [first.target, second.target])).toEqual([
      ["GET /a/:x", "GET /a/:y"],
    ]);
  });

  test("reports no conflict between similar routes of different shapes", () => {
    expect(
      conflicts(
        entries("GET /", "GET /:x", "GET /a/b", "GET /ab", "GET /a/:x", "GET /:x/b", "POST /a/b"),
      ),
    ).toEqual([]);
  });

  test("agrees with a naive matcher for any routes and path", () => {
    const segment = fc.constantFrom("a", "b", "c", ":x", ":y");
    const pattern = fc
      .array(segment, { maxLength: 4 })
      .filter(
        (parts) =>
          new Set(parts.filter((part) => part.startsWith(":"))).size ===
          parts.filter((part) => part.startsWith(":")).length,
      )
      .map((parts) => `GET /${parts.join("/")}`);
    const path = fc
      .array(fc.constantFrom("a", "b", "c", "d", "", ".."), { maxLength: 5 })
      .map((parts) => `/${parts.join("/")}`);
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 8 }), path, (patterns, asked) => {
        const match = table(...patterns).match("GET", asked);
        expect(match.kind === "found" ? match.target : undefined).toEqual(naive(patterns, asked));
      }),
      { numRuns: 2_000 },
    );
  });

  test("answers a hostile path of a hundred segments quickly", () => {
    const many = table(
      ...Array.from(
        { length: 12 },
        (_, index) => `GET /${"a/".repeat(index)}:x/${"a/".repeat(12 - index)}end`,
      ),
    );

    expect(many.match("GET", `/${"a/".repeat(100)}a`)).toEqual({ kind: "not-found" });
  });
});

/** The pattern that fits, segment by segment; among several the one that is static first. */
function naive(patterns: readonly string[], path: string): string | undefined {
  const parts = path === "/" ? [] : path.slice(1).split("/");
  if (parts.some((part) => part === "" || part === "..")) return undefined;
  const fitting = patterns.filter((pattern) => {
    const segments = pattern === "GET /" ? [] : pattern.slice(5).split("/");
    return (
      segments.length === parts.length &&
      segments.every((segment, index) => segment.startsWith(":") || segment === parts[index])
    );
  });
  const rank = (pattern: string) =>
    pattern
      .slice(5)
      .split("/")
      .map((segment) => (segment.startsWith(":") ? "1" : "0"))
      .join("");
  return fitting.reduce<string | undefined>(
    (best, pattern) => (best === undefined || rank(pattern) < rank(best) ? pattern : best),
    undefined,
  );
}
