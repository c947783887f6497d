import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseTrace } from "./trace.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const xray = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
const ofXray = { traceId: "5759e988bd862e3fe1be46a994272793", spanId: "53995c3f42cd8ad8", sampled: true };

describe("traceparent", () => {
  test.each([
    ["01", true],
    ["00", false],
    ["03", true],
    ["fe", false],
  ])("is read, flags %s", (flags, sampled) => {
    expect(parseTrace({ traceparent: `00-${traceId}-${spanId}-${flags}` })).toEqual({ traceId, spanId, sampled });
  });

  test("of a later version is read as far as it is known", () => {
    expect(parseTrace({ traceparent: `01-${traceId}-${spanId}-01` })).toEqual({ traceId, spanId, sampled: true });
    expect(parseTrace({ traceparent: `cc-${traceId}-${spanId}-01-what-comes` })).toEqual({ traceId, spanId, sampled: true });
  });

  test.each([
    ["version ff", `ff-${traceId}-${spanId}-01`],
    ["more than version 00 has", `00-${traceId}-${spanId}-01-more`],
    ["something stuck to the flags", `01-${traceId}-${spanId}-01more`],
    ["a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["capital letters", `00-${traceId.toUpperCase()}-${spanId}-01`],
    ["a short trace", `00-${traceId.slice(1)}-${spanId}-01`],
    ["no flags", `00-${traceId}-${spanId}`],
    ["flags that are no hexadecimal", `00-${traceId}-${spanId}-0x`],
    ["a space before it", ` 00-${traceId}-${spanId}-01`],
    ["a line break behind it", `00-${traceId}-${spanId}-01\n`],
    ["two of them", `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
    ["512 characters and more", `01-${traceId}-${spanId}-01-${"a".repeat(512)}`],
    ["nothing", ""],
  ])("counts as absent with %s", (_, traceparent) => {
    expect(parseTrace({ traceparent })).toBeUndefined();
  });
});

describe("X-Amzn-Trace-Id", () => {
  test("is read where there is no valid traceparent", () => {
    expect(parseTrace({ "x-amzn-trace-id": xray })).toEqual(ofXray);
    expect(parseTrace({ traceparent: "nonsense", "x-amzn-trace-id": xray })).toEqual(ofXray);
    expect(parseTrace({ traceparent: `00-${traceId}-${spanId}-01`, "x-amzn-trace-id": xray })).toEqual({
      traceId,
      spanId,
      sampled: true,
    });
  });

  test("of the environment counts last", () => {
    expect(parseTrace({}, { _X_AMZN_TRACE_ID: xray })).toEqual(ofXray);
    const other = "Root=1-11111111-222222222222222222222222";
    expect(parseTrace({ "x-amzn-trace-id": other }, { _X_AMZN_TRACE_ID: xray })?.traceId).toBe(
      "11111111222222222222222222222222",
    );
  });

  test("is read in any order and case, with fields that are not known", () => {
    const header = "Self=1-a; sampled=0 ;Lineage=a:b;PARENT=53995C3F42CD8AD8;root=1-5759E988-BD862E3FE1BE46A994272793;odd";
    expect(parseTrace({ "x-amzn-trace-id": header })).toEqual({ ...ofXray, sampled: false });
  });

  test("needs no parent and no sampling", () => {
    expect(parseTrace({ "x-amzn-trace-id": "Root=1-5759e988-bd862e3fe1be46a994272793" })).toEqual({
      ...ofXray,
      spanId: undefined,
      sampled: false,
    });
    expect(parseTrace({ "x-amzn-trace-id": xray.replace("53995c3f42cd8ad8", "0".repeat(16)) })?.spanId).toBeUndefined();
  });

  test.each([
    ["no root", "Parent=53995c3f42cd8ad8;Sampled=1"],
    ["another version", xray.replace("1-", "2-")],
    ["a root of zeros", `Root=1-00000000-${"0".repeat(24)}`],
    ["a root too long", xray.replace(";", "0;")],
    ["512 characters and more", `${xray};Lineage=${"a".repeat(512)}`],
    ["nothing", ""],
  ])("counts as absent with %s", (_, header) => {
    expect(parseTrace({ "x-amzn-trace-id": header })).toBeUndefined();
  });
});

test("A request without a trace has none", () => {
  expect(parseTrace({})).toBeUndefined();
});

test("Whatever is sent, a trace is well-formed or absent", () => {
  const piece = fc.constantFrom(
    "00",
    "ff",
    "-",
    "Root=1-",
    ";",
    "=",
    "Parent=",
    traceId,
    spanId,
    "5759e988",
    "bd862e3fe1be46a994272793",
    "\n",
  );
  const header = fc.oneof(
    fc.string(),
    fc.array(piece).map((pieces) => pieces.join("")),
  );
  fc.assert(
    fc.property(header, header, (traceparent, amazon) => {
      const trace = parseTrace({ traceparent, "x-amzn-trace-id": amazon });
      if (trace === undefined) return;
      expect(trace.traceId).toMatch(/^[\da-f]{32}$/);
      expect(trace.spanId ?? spanId).toMatch(/^[\da-f]{16}$/);
    }),
  );
});
