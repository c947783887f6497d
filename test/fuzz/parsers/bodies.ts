import assert from "node:assert/strict";
import fc from "fast-check";
import { FrameworkError, ValidationError } from "../../../src/base/errors/errors.ts";
import { parseBody } from "../../../src/parts/http/input.ts";
import { readMultipart } from "../../../src/parts/http/multipart.ts";
import { isMisread } from "../../support/misread-json.ts";
import { damagedBytes, damagedJson, damagedText } from "../mutations.ts";
import { outcomeOf, parser } from "../parser.ts";

const documented = { errors: [FrameworkError, ValidationError] };

/** Most levels and most members of one object, as the bounds of a body count them. */
function measured(value: unknown): { readonly depth: number; readonly members: number } {
  if (typeof value !== "object" || value === null) return { depth: 0, members: 0 };
  const found = Object.values(value).map(measured);
  return {
    depth: 1 + Math.max(0, ...found.map(({ depth }) => depth)),
    members: Math.max(
      Array.isArray(value) ? 0 : Object.keys(value).length,
      ...found.map(({ members }) => members),
    ),
  };
}

function hasPrototype(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const isBare = Array.isArray(value) || Object.getPrototypeOf(value) === null;
  return !isBare || Object.values(value).some(hasPrototype);
}

const order = fc.record({
  name: fc.string(),
  sizes: fc.array(fc.double()),
  of: fc.jsonValue({ maxDepth: 3 }),
});
const wide = fc
  .constantFrom(9_999, 10_000, 10_001)
  .map((count) => `{${Array.from({ length: count }, (_, at) => `"m${at}":0`).join()}}`);
const jsonTexts = fc.oneof({ weight: 12, arbitrary: damagedJson(order) }, wide);

const jsonBody = parser({
  name: "json-body",
  reads: "JSON and plain text in the body of a request, with `Content-Type`",
  inputs: fc.record({
    kind: fc.constantFrom("json", "value", "text", "form"),
    contentType: damagedText(
      fc.constantFrom(
        ...[
          "application/json",
          "application/problem+json; charset=utf-8",
          'text/plain;charset="UTF-8"',
        ],
        "application/x-www-form-urlencoded",
      ),
    ),
    bytes: damagedBytes(jsonTexts.map((text) => Buffer.from(text))),
  }),
  holds: async ({ kind, contentType, bytes }) => {
    const { value: parsed } = await outcomeOf(
      () => parseBody(kind, contentType, bytes),
      documented,
    );
    if (parsed === undefined || kind === "text" || kind === "form") return;
    const content = "fields" in parsed ? parsed.fields : parsed.body;
    const { depth, members } = measured(content);
    assert.ok(depth <= 64, `${depth} levels`);
    assert.ok(members <= 10_000, `${members} members`);
    assert.equal(hasPrototype(content), false);
    if (isMisread(content)) return;
    const plain: unknown = JSON.parse(new TextDecoder().decode(bytes));
    assert.equal(JSON.stringify(content), JSON.stringify(plain));
  },
});

const disposition = fc.constantFrom(
  'name="a"',
  'name="a"; filename="a.txt"',
  'name="__proto__"',
  "name=b",
  'name="ü"; filename=""',
);
const part = fc
  .record({
    disposition,
    type: fc.constantFrom("", "\r\nContent-Type: text/plain"),
    content: fc.string(),
  })
  .map(
    ({ disposition, type, content }) =>
      `Content-Disposition: form-data; ${disposition}${type}\r\n\r\n${content}`,
  );
const multipart = fc.oneof(
  { weight: 20, arbitrary: fc.array(part, { maxLength: 4 }) },
  fc
    .constantFrom(999, 1_000, 1_001)
    .map((count): string[] =>
      Array(count).fill('Content-Disposition: form-data; name="a"\r\n\r\n1'),
    ),
);

const multipartBody = parser({
  name: "multipart-body",
  reads: "`multipart/form-data`, with its boundary",
  share: 0.3,
  inputs: fc.record({
    contentType: fc.oneof(
      { weight: 3, arbitrary: fc.constant("multipart/form-data; boundary=b-1") },
      damagedText(
        fc.constantFrom(
          'multipart/form-data; boundary="b-1"',
          "multipart/form-data; boundary=b-1; a=b",
        ),
      ),
    ),
    bytes: damagedBytes(
      multipart.map((parts) =>
        Buffer.from([...parts.map((text) => `--b-1\r\n${text}\r\n`), "--b-1--\r\n"].join("")),
      ),
    ),
  }),
  holds: async ({ contentType, bytes }) => {
    const read = () => readMultipart({ "content-type": contentType }, bytes);
    const { value: fields } = await outcomeOf(read, documented);
    if (fields === undefined) return;
    assert.equal(Object.getPrototypeOf(fields), null);
    const values = Object.values(fields).flat();
    assert.ok(values.length <= 1_001, `${values.length} parts`);
    let size = 0;
    for (const value of values) {
      if (value instanceof File) assert.doesNotMatch(value.name, /\p{Cc}/u);
      size += value instanceof File ? value.size : Buffer.byteLength(String(value));
    }
    // Bytes that are not UTF-8 become three bytes each.
    assert.ok(size <= 3 * bytes.byteLength);
  },
});

export const bodyParsers = [jsonBody, multipartBody];
