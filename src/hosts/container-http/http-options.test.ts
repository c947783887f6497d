import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import { checkHttpOptions, type HttpServerOptions, httpSettings } from "./http-options.ts";

const pem = (name: string) =>
  readFileSync(new URL(`../../../test/fixtures/tls/localhost-${name}.pem`, import.meta.url));
const [key, cert] = [pem("key"), pem("cert")];

function problemsOf(options: unknown): readonly BootProblem[] {
  try {
    checkHttpOptions(options as HttpServerOptions);
    return [];
  } catch (error) {
    if (error instanceof BootError) return error.problems;
    throw error;
  }
}

test("every option has a default, which also replaces undefined", () => {
  const defaults = {
    keepAliveTimeoutMs: 65_000,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 60_000,
    writeTimeoutMs: 30_000,
    maxHeaderBytes: 16_384,
    maxConnections: 10_000,
    trustedProxies: 0,
  };
  expect(httpSettings({})).toMatchObject(defaults);
  expect(httpSettings({}, true)).toMatchObject({ ...defaults, trustedProxies: 1 });
  expect(httpSettings({ trustedProxies: 2 }, true).trustedProxies).toBe(2);
  expect(problemsOf({ port: undefined, headersTimeoutMs: undefined, upgrade: undefined })).toEqual(
    [],
  );
  expect(httpSettings({ requestTimeoutMs: 5_000 }).headersTimeoutMs).toBe(5_000);
});

test("accepts valid options", () => {
  expect(problemsOf({})).toEqual([]);
  expect(
    problemsOf({
      port: 0,
      host: "127.0.0.1",
      keepAliveTimeoutMs: 1,
      headersTimeoutMs: 30_000,
      requestTimeoutMs: 30_000,
      writeTimeoutMs: 1,
      maxHeaderBytes: 1_024,
      maxConnections: 1,
      trustedProxies: 2,
      run: ["workers", "schedules"],
      upgrade: () => {},
    }),
  ).toEqual([]);
});

test.each([
  ["trustedProxies", -1],
  ["trustedProxies", 1.5],
  ["run", []],
  ["run", ["https"]],
  ["run", "http"],
  ["keepAliveTimeoutMs", -1],
  ["keepAliveTimeoutMs", 0],
  ["headersTimeoutMs", Number.NaN],
  ["requestTimeoutMs", Number.POSITIVE_INFINITY],
  ["requestTimeoutMs", 3_600_001],
  ["writeTimeoutMs", 0],
  ["maxHeaderBytes", 1_023],
  ["maxHeaderBytes", 16_384.5],
  ["maxConnections", 0],
  ["maxConnections", "10"],
  ["maxConnections", null],
  ["upgrade", {}],
  ["port", 65_536],
  ["host", ""],
])("refuses %s: %j, and says which values are allowed", (name, value) => {
  expect(problemsOf({ [name]: value })).toEqual([
    expect.objectContaining({
      key: `runContainer: ${name}`,
      rule: "option-type",
      message: expect.stringContaining("is not allowed"),
      fix: expect.stringMatching(/^use (a|an) /),
    }),
  ]);
});

test("refuses unknown options, whatever their name, and reports all problems at once", () => {
  const options = { keepAliveTimeout: 5, toString: 1, ["x".repeat(1_000)]: 1, maxConnections: 0 };
  expect(problemsOf(options).map(({ key, rule }) => [key.slice(0, 40), rule])).toEqual([
    ["runContainer: keepAliveTimeout", "unknown-option"],
    ["runContainer: toString", "unknown-option"],
    [`runContainer: ${"x".repeat(26)}`, "unknown-option"],
    ["runContainer: maxConnections", "option-type"],
  ]);
  expect(() => checkHttpOptions({ maxConnections: 0 })).toThrow(
    "runContainer: maxConnections: 0 is not allowed; use a whole number from 1 to 1,000,000",
  );
  expect(() => checkHttpOptions({ upgrade: true as never })).toThrow(
    "runContainer: upgrade: true is not allowed; use a function",
  );
});

test("refuses a longer timeout for a request's head than for the whole request", () => {
  const order = [
    expect.objectContaining({ key: "runContainer: headersTimeoutMs", rule: "timeout-order" }),
  ];
  expect(problemsOf({ headersTimeoutMs: 60_001 })).toEqual(order);
  expect(problemsOf({ headersTimeoutMs: 20, requestTimeoutMs: 10 })).toEqual(order);
});

test("accepts a key and its certificate as text or bytes", () => {
  expect(problemsOf({ tls: { key, cert } })).toEqual([]);
  expect(
    problemsOf({
      tls: { key: key.toString(), cert: cert.toString(), passphrase: "x", minVersion: "TLSv1.3" },
    }),
  ).toEqual([]);
});

test.each<[string, object, string, string]>([
  ["no object", { tls: "key" }, "tls", "option-type"],
  ["nothing", { tls: null }, "tls", "option-type"],
  ["no certificate", { tls: { key } }, "tls", "certificate"],
  ["no key", { tls: { cert } }, "tls", "certificate"],
  ["a key of another type", { tls: { key: 5, cert } }, "tls.key", "option-type"],
  ["an old version", { tls: { key, cert, minVersion: "TLSv1" } }, "tls.minVersion", "option-type"],
  [
    "a passphrase that is no text",
    { tls: { key, cert, passphrase: 5 } },
    "tls.passphrase",
    "option-type",
  ],
  [
    "an option that TLS has and we do not",
    { tls: { key, cert, ca: cert } },
    "tls.ca",
    "unknown-option",
  ],
  ["what is no key", { tls: { key: "SECRET", cert } }, "tls", "certificate"],
  ["what is no certificate", { tls: { key, cert: key } }, "tls", "certificate"],
])("refuses TLS with %s, without revealing the key", (_name, options, name, rule) => {
  const problems = problemsOf(options);
  expect(problems).toEqual([expect.objectContaining({ key: `runContainer: ${name}`, rule })]);
  expect(JSON.stringify(problems)).not.toMatch(/SECRET|PRIVATE KEY/);
});
