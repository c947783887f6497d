import fc from "fast-check";
import { expect, test } from "vitest";
import { isPermanent, PermanentError } from "../../base/errors/errors.ts";
import { deliveryJob, isChannelName, readDelivery } from "./delivery.ts";
import { readJob } from "./job-message.ts";

const delivery = {
  channel: "webhook",
  key: "d1",
  message: { url: "https://example.com/hook", body: {} },
};

test("the delivery job has a valid job name", () => {
  const ids = { jobId: "j1", causedBy: "r1", origRequestId: "r1" };
  expect(readJob(JSON.stringify({ name: deliveryJob, payload: delivery, ...ids })).name).toBe(
    "keelson.delivery.send",
  );
});

test("reads a delivery as it was enqueued, and drops unknown members", () => {
  expect(readDelivery({ ...delivery, more: 1 })).toEqual(delivery);
  expect(readDelivery({ ...delivery, key: "" }).key).toBe("");
});

test.each<[string, Record<string, unknown>, string]>([
  ["no channel", { channel: undefined }, "its channel is not a name"],
  ["a channel in a list", { channel: ["webhook"] }, "its channel is not a name"],
  ["a channel that objects have", { channel: "__proto__" }, "its channel is not a name"],
  ["no key", { key: undefined }, "its key is not a string"],
  ["a key that is a number", { key: 1 }, "its key is not a string"],
  ["no message", { message: undefined }, "its message is not an object"],
  ["a message that is null", { message: null }, "its message is not an object"],
  ["a message that is a list", { message: [{}] }, "its message is not an object"],
  ["a message that is a text", { message: "hello" }, "its message is not an object"],
])("refuses a delivery with %s permanently, with the reason", (_what, members, message) => {
  expect(() => readDelivery({ ...delivery, ...members })).toThrow(new PermanentError(message));
});

test("reads any payload or refuses it permanently", () => {
  const members = fc.record(
    {
      channel: fc.oneof(fc.constant("log"), fc.jsonValue()),
      key: fc.oneof(fc.string(), fc.jsonValue()),
      message: fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue()),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(members, (payload) => {
      try {
        expect(readDelivery(payload)).toEqual(payload);
      } catch (error) {
        if (!isPermanent(error)) throw error;
      }
    }),
  );
});

test.each([
  ["log", true],
  ["audit-log2", true],
  ["a".repeat(63), true],
  ["a".repeat(64), false],
  ["", false],
  ["Log", false],
  ["2log", false],
  ["-log", false],
  ["audit.log", false],
  ["audit log", false],
  ["log\n", false],
])("%j as a channel name: %s", (name, expected) => {
  expect(isChannelName(name)).toBe(expected);
});
