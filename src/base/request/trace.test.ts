// own process: modules read once what Lambda's runtime gives them
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createRandomDigits, incomingSpan, RunTrace, w3cSpan } from "./trace.ts";

const newDigits = createRandomDigits();
const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const traceparent = `00-${traceId}-${spanId}-01`;
const xray = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
const ofXray = {
  traceId: "5759e988bd862e3fe1be46a994272793",
  spanId: "53995c3f42cd8ad8",
  sampled: true,
  state: undefined,
};
const spanOf = (traceId: string, spanId: string | undefined, sampled: boolean, state?: string) => ({
  traceId,
  spanId,
  sampled,
  state,
});

// The cases of W3C's test suite for implementations (github.com/w3c/trace-context, folder test), and some more.
describe("traceparent", () => {
  test.each([
    ["01", true],
    ["00", false],
    ["03", true],
    ["fe", false],
    ["ff", true],
  ])("is read with the flags %s", (flags, sampled) => {
    expect(w3cSpan({ traceparent: `00-${traceId}-${spanId}-${flags}` })).toEqual(
      spanOf(traceId, spanId, sampled),
    );
  });

  test("of a later version is read as far as it is known", () => {
    for (const version of [
      `01-${traceId}-${spanId}-01`,
      `cc-${traceId}-${spanId}-01-what-the-future-will-be-like`,
    ]) {
      expect(w3cSpan({ traceparent: version })).toEqual(spanOf(traceId, spanId, true));
    }
  });

  test.each([" ", "\t", " \t"])("may be surrounded by blanks", (blank) => {
    expect(w3cSpan({ traceparent: `${blank}${traceparent}${blank}` })).toEqual(
      spanOf(traceId, spanId, true),
    );
  });

  test.each([
    ["version ff", `ff-${traceId}-${spanId}-01`],
    ["a version that is none", `.0-${traceId}-${spanId}-01`],
    ["half of a version that is none", `0.-${traceId}-${spanId}-01`],
    ["a long version", `000-${traceId}-${spanId}-01`],
    ["a longer version", `0000-${traceId}-${spanId}-01`],
    ["a short version", `0-${traceId}-${spanId}-01`],
    ["more than version 00 has", `${traceparent}-what-the-future-will-be-like`],
    ["a dash more than version 00 has", `${traceparent}-`],
    ["a dot behind it", `${traceparent}.`],
    [
      "something stuck to the flags of a later version",
      `cc-${traceId}-${spanId}-01.what-the-future-will-be-like`,
    ],
    ["a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a trace that begins with a dot", `00-.${traceId.slice(1)}-${spanId}-01`],
    ["a trace that ends with a dot", `00-${traceId.slice(1)}.-${spanId}-01`],
    ["a long trace", `00-${traceId}0-${spanId}-01`],
    ["a short trace", `00-${traceId.slice(1)}-${spanId}-01`],
    ["a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["a span that begins with a dot", `00-${traceId}-.${spanId.slice(1)}-01`],
    ["a long span", `00-${traceId}-${spanId}0-01`],
    ["a short span", `00-${traceId}-${spanId.slice(1)}-01`],
    ["flags that are no hexadecimal", `00-${traceId}-${spanId}-.0`],
    ["long flags", `00-${traceId}-${spanId}-001`],
    ["short flags", `00-${traceId}-${spanId}-1`],
    ["no flags", `00-${traceId}-${spanId}`],
    ["capital letters", `00-${traceId.toUpperCase()}-${spanId}-01`],
    ["a line break behind it", `${traceparent}\n`],
    ["two of them", `${traceparent}, ${traceparent}`],
    ["512 characters and more", `01-${traceId}-${spanId}-01-${"a".repeat(512)}`],
    ["nothing", ""],
  ])("is ignored with %s", (_, traceparent) => {
    expect(w3cSpan({ traceparent, tracestate: "foo=1" })).toBeUndefined();
  });
});

describe("tracestate", () => {
  const stateOf = (tracestate: unknown) => {
    const span = w3cSpan({ traceparent, tracestate });
    expect(span).toMatchObject({ traceId, spanId, sampled: true });
    return span?.state;
  };
  const all = (from: number, until: number) =>
    String.fromCharCode(...Array.from({ length: until - from + 1 }, (_, at) => from + at));
  const value = `${all(0x20, 0x2b)}${all(0x2d, 0x3c)}${all(0x3e, 0x7e)}`;
  const members = (count: number) =>
    Array.from({ length: count }, (_, at) => `bar${at}=${at}`).join(",");

  test.each([
    ["one member", "foo=1"],
    ["several, in their order", "foo=1,bar=2,rojo=1,congo=2,baz=3"],
    ["all characters that are allowed", `${all(0x61, 0x7a)}0123456789_-*/@a-z0-9_-*/=${value}`],
    ["32 members", members(32)],
    ["a key of 256 characters", `${"z".repeat(256)}=1`],
    ["a value of 256 characters", `foo=${"x".repeat(256)}`],
    ["512 characters", `a=${"x".repeat(253)},b=${"x".repeat(254)}`],
  ])("is passed on with %s", (_, tracestate) => {
    expect(stateOf(tracestate)).toBe(tracestate);
  });

  test.each([
    ["blanks between members", "foo=1 \t , \t bar=2, \t baz=3", "foo=1,bar=2,baz=3"],
    ["blanks around all", "\t foo=1 \t", "foo=1"],
    ["blanks that begin a value", "foo=  1", "foo=  1"],
    ["empty members, as of an empty header", "foo=1, ,bar=2,", "foo=1,bar=2"],
  ])("is passed on in its normal form with %s", (_, tracestate, sent) => {
    expect(stateOf(tracestate)).toBe(sent);
  });

  test.each([
    ["nothing", ""],
    ["blanks alone", " , \t"],
    ["no value", "foo="],
    ["no key", "=1"],
    ["neither", "foobar"],
    ["a key twice", "foo=1,foo=1"],
    ["a key twice with two values", "foo=1,bar=2,foo=2"],
    ["a blank behind a key", "foo =1"],
    ["a key in capitals", "FOO=1"],
    ["a dot in a key", "foo.bar=1"],
    ["a key that begins with @", "@foo=1,bar=2"],
    ["a second = in a value", "foo=bar=baz"],
    ["a character beyond ASCII", "foo=ä"],
    ["a line break", "foo=1\nbar"],
    ["33 members", members(33)],
    ["a key of 257 characters", `${"z".repeat(257)}=1`],
    ["a value of 257 characters", `foo=${"x".repeat(257)}`],
    ["513 characters", `a=${"x".repeat(254)},b=${"x".repeat(254)}`],
    ["something other than a text", 7],
  ])("is ignored with %s, and the trace continues", (_, tracestate) => {
    expect(stateOf(tracestate)).toBeUndefined();
  });
});

describe("X-Amzn-Trace-Id", () => {
  test("is read if there is no valid traceparent", () => {
    expect(incomingSpan({ "x-amzn-trace-id": xray })).toEqual(ofXray);
    expect(incomingSpan({ traceparent: "nonsense", "x-amzn-trace-id": xray })).toEqual(ofXray);
    expect(incomingSpan({ traceparent, "x-amzn-trace-id": xray })).toEqual(
      spanOf(traceId, spanId, true),
    );
  });

  test("of the invocation takes precedence over that of the request, which does not know the function's segment", () => {
    expect(incomingSpan({}, { _X_AMZN_TRACE_ID: xray })).toEqual(ofXray);
    const other = "Root=1-11111111-222222222222222222222222";
    expect(incomingSpan({ "x-amzn-trace-id": other }, { _X_AMZN_TRACE_ID: xray })).toEqual(ofXray);
    expect(incomingSpan({ traceparent }, { _X_AMZN_TRACE_ID: xray })?.traceId).toBe(traceId);
  });

  test("of concurrent invocations comes from Lambda's store, never from a variable, which belongs to another", () => {
    const header = "Root=1-11111111-222222222222222222222222;Parent=3333333333333333;Sampled=1";
    let ofInvocation: unknown = header;
    vi.stubGlobal("awslambda", { InvokeStore: { getXRayTraceId: () => ofInvocation } });
    onTestFinished(() => void vi.unstubAllGlobals());
    const env = { _X_AMZN_TRACE_ID: xray };
    expect(incomingSpan({}, env)).toEqual(
      spanOf(`11111111${"2".repeat(24)}`, "3".repeat(16), true),
    );
    ofInvocation = undefined;
    expect(incomingSpan({}, env)).toEqual(ofXray);
    expect(incomingSpan({}, { ...env, AWS_LAMBDA_MAX_CONCURRENCY: "10" })).toBeUndefined();
    for (const store of [{}, { InvokeStore: {} }, { InvokeStore: undefined }]) {
      vi.stubGlobal("awslambda", store); // as the AWS SDK leaves it elsewhere
      expect(incomingSpan({}, env)).toEqual(ofXray);
    }
  });

  test("is read in any order and case, with unknown fields", () => {
    const header =
      "Self=1-a; sampled=0 ;Lineage=a:b;PARENT=53995C3F42CD8AD8;root=1-5759E988-BD862E3FE1BE46A994272793;odd";
    expect(incomingSpan({ "x-amzn-trace-id": header })).toEqual({ ...ofXray, sampled: false });
  });

  test("needs no parent and no sampling", () => {
    const root = "Root=1-5759e988-bd862e3fe1be46a994272793";
    for (const header of [root, `${root};Parent=${"0".repeat(16)};Sampled=?`]) {
      expect(incomingSpan({ "x-amzn-trace-id": header })).toEqual({
        ...ofXray,
        spanId: undefined,
        sampled: false,
      });
    }
  });

  test.each([
    ["no root", "Parent=53995c3f42cd8ad8;Sampled=1"],
    ["another version", xray.replace("1-", "2-")],
    ["a root of zeros", `Root=1-00000000-${"0".repeat(24)}`],
    ["a root too long", xray.replace(";", "0;")],
    ["512 characters and more", `${xray};Lineage=${"a".repeat(512)}`],
    ["nothing", ""],
  ])("is ignored with %s", (_, header) => {
    expect(incomingSpan({ "x-amzn-trace-id": header })).toBeUndefined();
  });
});

test("a request without a trace has none", () => {
  expect(incomingSpan({})).toBeUndefined();
});

describe("a run's trace", () => {
  const parent = spanOf(traceId, spanId, true, "foo=1");

  test("continues its parent's, with its own span and the state of other systems", () => {
    const trace = new RunTrace(newDigits, parent);
    const { headers } = trace;
    expect(trace).toMatchObject({ traceId, sampled: true });
    expect(headers()).toEqual({
      traceparent: expect.stringMatching(`^00-${traceId}-[\\da-f]{16}-01$`),
      tracestate: "foo=1",
    });
    expect(headers().traceparent).not.toContain(spanId);
    expect(headers()).toBe(headers());
  });

  test("starts with the run if there is no parent, and is not recorded", () => {
    const [one, other] = [new RunTrace(newDigits), new RunTrace(newDigits)];
    expect(one.sampled).toBe(false);
    expect(one.traceId).toMatch(/^[\da-f]{32}$/);
    expect(new Set([one.traceId, other.traceId, traceId]).size).toBe(3);
    expect(one.headers()).toEqual({
      traceparent: expect.stringMatching(`^00-${one.traceId}-[\\da-f]{16}-00$`),
    });
  });
});

test("generates as many random digits as requested, different each time", () => {
  const digits = Array.from({ length: 1_000 }, (_, index) => newDigits(index % 3 === 0 ? 8 : 16));
  for (const [index, each] of digits.entries())
    expect(each).toMatch(index % 3 === 0 ? /^[\da-f]{16}$/ : /^[\da-f]{32}$/);
  expect(new Set(digits.map((each) => each.slice(0, 16))).size).toBe(digits.length);
});

describe("for any input", () => {
  const piece = fc.constantFrom(
    ...[
      "00",
      "ff",
      "-",
      "Root=1-",
      ";",
      "=",
      "Parent=",
      ",",
      "foo=1",
      " ",
      "\n",
      "5759e988",
      "bd862e3fe1be46a994272793",
    ],
    ...[traceId, spanId, traceparent],
  );
  const header = fc.oneof(
    fc.anything(),
    fc.string(),
    fc.array(piece).map((pieces) => pieces.join("")),
  );

  test("a span is valid or absent", () => {
    fc.assert(
      fc.property(header, header, header, (traceparent, tracestate, amazon) => {
        const span = incomingSpan({ traceparent, tracestate, "x-amzn-trace-id": amazon });
        if (span === undefined) return;
        expect(span.traceId).toMatch(/^(?!0{32})[\da-f]{32}$/);
        expect(span.spanId ?? spanId).toMatch(/^(?!0{16})[\da-f]{16}$/);
        expect(span.state?.length ?? 1).toBeGreaterThan(0);
        expect(span.state?.length ?? 0).toBeLessThanOrEqual(512);
      }),
    );
  });

  test("a value that is not an object contains no span", () => {
    fc.assert(
      fc.property(fc.anything(), (given) => void expect(() => w3cSpan(given)).not.toThrow()),
    );
  });

  test("a trace that is passed on reads the same", () => {
    const hexadecimal = (length: number) =>
      fc
        .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
        .map((digits) => digits.join(""))
        .filter((digits) => /[^0]/.test(digits));
    const key = fc.stringMatching(/^[a-z\d][a-z\d_*@-]{0,10}$/);
    const value = fc.stringMatching(/^[ -+\--<>-~]{0,10}[!-+\--<>-~]$/);
    const state = fc
      .uniqueArray(fc.tuple(key, value), { maxLength: 20, selector: ([key]) => key })
      .map((members) => members.map((member) => member.join("=")).join(",") || undefined);
    fc.assert(
      fc.property(
        hexadecimal(32),
        hexadecimal(16),
        fc.boolean(),
        state,
        (traceId, spanId, sampled, state) => {
          const read = w3cSpan(
            JSON.parse(
              JSON.stringify(
                new RunTrace(newDigits, { traceId, spanId, sampled, state }).headers(),
              ),
            ),
          );
          expect(read).toMatchObject({ traceId, sampled, state });
        },
      ),
    );
  });
});
