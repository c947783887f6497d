import fc from "fast-check";
import { expect, test } from "vitest";
import { isPermanent, PermanentError } from "../../base/errors/errors.ts";
import { isIdentifier } from "../../base/identity/access.ts";
import {
  type JobIdentity,
  type JobMessage,
  jobHash,
  jobPayload,
  jobText,
  readJob,
} from "./job-message.ts";
import { waitingText } from "./waited.ts";

const job: JobMessage = {
  jobId: "j1",
  name: "files.file.scan",
  payload: { name: "a.txt" },
  causedBy: "e1",
  origRequestId: "r0",
  tenantId: "acme",
  userId: "ann",
};

const ids = fc.stringMatching(/^[A-Za-z0-9._:=+/@-]{1,128}$/);
const texts = fc.string({ minLength: 1, maxLength: 30, unit: "grapheme" }).filter(isIdentifier);
const jobNames = fc.stringMatching(/^[a-z][a-z0-9-]{0,62}(\.[a-z][a-z0-9-]{0,62}){2}$/);
const payloads = fc.dictionary(fc.string(), fc.jsonValue());
const originator = fc.constant("system" as const);
const whose = fc.oneof(
  ...[
    fc.constant({}),
    fc.record({ tenantId: texts }),
    fc.record({ tenantId: texts, userId: texts }),
  ],
  ...[fc.record({ originator }), fc.record({ tenantId: texts, originator })],
);

test("reads an enqueued job unchanged", () => {
  fc.assert(
    fc.property(
      jobNames,
      ids,
      ids,
      ids,
      payloads,
      whose,
      (name, jobId, causedBy, origRequestId, given, of) => {
        const payload = jobPayload(name, given);
        const { payload: read, ...rest } = readJob(
          jobText({ name, jobId, causedBy, origRequestId, payload, ...of }),
        );
        expect(rest).toEqual({ name, jobId, causedBy, origRequestId, ...of });
        expect(JSON.stringify(read)).toBe(JSON.stringify(given));
      },
    ),
  );
});

test("reads a job of an older version, which has no originator, as not created by the system", () => {
  const text =
    '{"jobId":"j1","name":"files.file.scan","payload":{"name":"a.txt"},"causedBy":"e1","origRequestId":"r0","tenantId":"acme","userId":"ann"}';
  expect(readJob(text)).toEqual(job);
  expect(jobText(job)).toBe(text);
});

test("drops unknown members of a job", () => {
  expect(readJob(JSON.stringify({ ...job, isAdmin: true }))).toEqual(job);
});

test("accepts a job up to SQS's limit, with room to wait, and refuses one byte more with both sizes", () => {
  const sized = (text: string) => jobText({ ...job, payload: { text } });
  const room = 1_048_576 - 128 - Buffer.byteLength(sized(""));
  const largest = sized("x".repeat(room));
  expect(Buffer.byteLength(largest)).toBe(1_048_576 - 128);
  const [many, ms] = [Number.MAX_SAFE_INTEGER, 1_700_000_000_000];
  const longest = { times: 1_000_001, attempts: 1_000_001, sinceMs: ms };
  const waiting = waitingText(largest, { ...longest, position: many, turn: many });
  expect(Buffer.byteLength(waiting)).toBeLessThanOrEqual(1_048_576);
  expect(() => sized("x".repeat(room + 1))).toThrow(
    new RangeError(
      "ctx.enqueue: the job files.file.scan has 1048577 bytes, and SQS takes 1048576; enqueue where the data is, not the data",
    ),
  );
  expect(() => sized("€".repeat(Math.ceil(room / 2)))).toThrow(RangeError); // its bytes count, not its characters
});

test("escapes characters that SQS refuses, and counts the escapes towards the size of the job", () => {
  const given = {
    ...job,
    tenantId: "a\uFFFE",
    payload: { "\uFFFF\ud800": `${String.raw`\uFFFE\\`}\uFFFE` },
  };
  const text = jobText(given);
  expect(text).toMatch(/^[ -~]+$/);
  expect(JSON.parse(text)).toEqual(given);
  expect(() => jobText({ ...job, payload: { text: "\uFFFE".repeat(180_000) } })).toThrow(
    "and SQS takes 1048576",
  );
});

test("copies the payload as JSON, so that later changes by the caller do not affect it", () => {
  const given = { at: new Date(0), none: undefined, list: [Number.NaN] };
  const payload = jobPayload("files.file.scan", given);
  expect(payload).toStrictEqual({ at: "1970-01-01T00:00:00.000Z", list: [null] });
  given.list.push(1);
  expect(payload["list"]).toEqual([null]);
});

test.each([
  ["undefined", undefined],
  ["null", null],
  ["a number", 7],
  ["a text", "a.txt"],
  ["a list", [{}]],
  ["a function", () => 1],
  ["a text in JSON", new Date(0)],
  ["a list in JSON", { toJSON: () => [] }],
  ["nothing in JSON", { toJSON: () => undefined }],
])("refuses to enqueue a payload that is %s", (_what, payload) => {
  const message = "ctx.enqueue: the payload of files.file.scan is not an object";
  expect(() => jobPayload("files.file.scan", payload)).toThrow(new TypeError(message));
});

test("refuses to enqueue a payload that JSON cannot represent", () => {
  const circle: { itself?: unknown } = {};
  circle.itself = circle;
  expect(() => jobPayload("files.file.scan", { size: 1n })).toThrow(TypeError);
  expect(() => jobPayload("files.file.scan", circle)).toThrow(TypeError);
});

test.each<[string, unknown, string]>([
  ["null", null, "the message is not an object"],
  ["a list", [job], "the message is not an object"],
  ["a text", "job", "the message is not an object"],
  ["no name", { ...job, name: undefined }, "its name is not <feature>.<entity>.<operation>"],
  [
    "a name in a list",
    { ...job, name: ["files.file.scan"] },
    "its name is not <feature>.<entity>.<operation>",
  ],
  [
    "a name of two words",
    { ...job, name: "file.scan" },
    "its name is not <feature>.<entity>.<operation>",
  ],
  [
    "a name of four words",
    { ...job, name: "a.b.c.d" },
    "its name is not <feature>.<entity>.<operation>",
  ],
  [
    "a name with capitals",
    { ...job, name: "Files.file.scan" },
    "its name is not <feature>.<entity>.<operation>",
  ],
  [
    "a name with a line break",
    { ...job, name: "files.file.scan\n" },
    "its name is not <feature>.<entity>.<operation>",
  ],
  [
    "a word that is too long",
    { ...job, name: `files.file.${"s".repeat(64)}` },
    "its name is not <feature>.<entity>.<operation>",
  ],
  [
    "a name that objects have",
    { ...job, name: "constructor" },
    "its name is not <feature>.<entity>.<operation>",
  ],
  ["no ID", { ...job, jobId: undefined }, "jobId is not an ID"],
  ["an ID that is too long", { ...job, jobId: "j".repeat(129) }, "jobId is not an ID"],
  ["an ID with odd characters", { ...job, jobId: "j1 OR 1" }, "jobId is not an ID"],
  ["no payload", { ...job, payload: undefined }, "its payload is not an object"],
  ["a payload that is a list", { ...job, payload: [] }, "its payload is not an object"],
  ["no cause", { ...job, causedBy: undefined }, "causedBy is not an ID"],
  ["no first request", { ...job, origRequestId: 7 }, "origRequestId is not an ID"],
  [
    "a tenant without text",
    { ...job, tenantId: "" },
    "tenantId is not a string of 1 to 256 characters without control characters",
  ],
  ["a user without a tenant", { ...job, tenantId: undefined }, "userId comes without a tenantId"],
])("refuses a forged message with %s permanently, with the reason", (_what, forged, message) => {
  expect(() => readJob(JSON.stringify(forged))).toThrow(new PermanentError(message));
});

test("treats members called __proto__ as data, and never uses them for a missing member", () => {
  const { name: _name, ...rest } = job;
  const forged = `{"__proto__":{"name":"files.file.scan"},${JSON.stringify(rest).slice(1)}`;
  expect(() => readJob(forged)).toThrow(
    new PermanentError("its name is not <feature>.<entity>.<operation>"),
  );
  const payload = jobPayload("files.file.scan", JSON.parse('{"__proto__":{"isAdmin":true}}'));
  const read = readJob(jobText({ ...job, payload })).payload as { readonly isAdmin?: unknown };
  expect([Object.keys(read), read.isAdmin]).toEqual([["__proto__"], undefined]);
});

test("reads any text or refuses it permanently", () => {
  const member = fc.oneof(ids, texts, jobNames, payloads, fc.jsonValue());
  const nearlyJobs = fc.record(
    {
      name: fc.oneof(jobNames, member),
      jobId: fc.oneof(ids, member),
      payload: fc.oneof(payloads, member),
      causedBy: fc.oneof(ids, member),
      origRequestId: fc.oneof(ids, member),
      tenantId: fc.oneof(texts, member),
      userId: fc.oneof(texts, member),
    },
    { requiredKeys: ["name"] },
  );
  const bodies = fc.oneof(
    fc.string(),
    fc.json(),
    nearlyJobs.map((nearly) => JSON.stringify(nearly)),
  );
  let [reads, refusals] = [0, 0];
  fc.assert(
    fc.property(bodies, (text) => {
      try {
        expect(typeof readJob(text).payload).toBe("object");
        reads += 1;
      } catch (error) {
        if (!isPermanent(error)) throw error;
        refusals += 1;
      }
    }),
    { numRuns: 2_000 },
  );
  expect(Math.min(reads, refusals)).toBeGreaterThan(0);
});

const identity: JobIdentity = { name: "files.file.scan", tenantId: "acme" };
const payload = { a: 1, b: { c: "x", d: [1, 2] } };

test("a hash is valid as an SQS deduplication ID and group ID", () => {
  expect(jobHash(identity, payload)).toMatch(/^[\w-]{43}$/);
});

test("equal jobs have equal hashes, regardless of member order", () => {
  expect(jobHash(identity, { b: { d: [1, 2], c: "x" }, a: 1 })).toBe(
    jobHash({ ...identity, userId: undefined }, payload),
  );
});

test("jobs with different tenants, users, names or payloads have different hashes", () => {
  const hashes = [
    jobHash(identity, payload),
    jobHash({ ...identity, tenantId: "acme2" }, payload),
    jobHash({ ...identity, tenantId: undefined }, payload),
    jobHash({ ...identity, userId: "ann" }, payload),
    jobHash({ ...identity, userId: "bob" }, payload),
    jobHash({ ...identity, tenantId: "ann", userId: "acme" }, payload),
    jobHash({ ...identity, name: "files.file.scan2" }, payload),
    jobHash(identity, { ...payload, a: 2 }),
    jobHash(identity, { ...payload, a: "1" }),
    jobHash(identity, { ...payload, b: { c: "x", d: [2, 1] } }),
    jobHash(identity, {}),
    jobHash(identity, ["payload", payload]),
    jobHash(identity, ["key", "a"]),
    jobHash(identity, ["order", "a"]),
  ];
  expect(new Set(hashes).size).toBe(hashes.length);
});

test.each(["-", "=", "", "=-", "--", "undefined"])(
  "the hash of a job without a tenant differs from that of a tenant called %j",
  (tenantId) => {
    const { name } = identity;
    expect(jobHash({ name, tenantId: undefined }, payload)).not.toBe(
      jobHash({ name, tenantId }, payload),
    );
    expect(jobHash({ name, tenantId: "acme" }, payload)).not.toBe(
      jobHash({ name, tenantId: "acme", userId: tenantId }, payload),
    );
  },
);

test("the hashes of different tenants and users differ, for any names", () => {
  const tenants = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.constantFrom("-", "=", "=acme", "acme", "4:acme"),
  );
  const users = fc.option(tenants, { nil: undefined });
  fc.assert(
    fc.property(users, users, users, users, (tenantId, userId, otherTenant, otherUser) => {
      fc.pre(tenantId !== otherTenant || userId !== otherUser);
      const other = { ...identity, tenantId: otherTenant, userId: otherUser };
      expect(jobHash({ ...identity, tenantId, userId }, payload)).not.toBe(jobHash(other, payload));
    }),
  );
});
