import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { signWebhook } from "./standard-webhooks.ts";

const message = {
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  timestampSeconds: 1_614_265_330,
  body: '{"test": 2432232314}',
};

test("signs a message as the Standard Webhooks libraries do", () => {
  // The vector of https://github.com/standard-webhooks/standard-webhooks/tree/main/libraries
  expect(signWebhook({ ...message, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" })).toBe(
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  );
});

test("uses a secret without the prefix as the key, in UTF-8", () => {
  const signed = `${message.id}.${message.timestampSeconds}.${message.body}`;
  expect(signWebhook({ ...message, secret: "schlüssel" })).toBe(
    `v1,${createHmac("sha256", Buffer.from("schlüssel")).update(signed).digest("base64")}`,
  );
});

test.each(["", "whsec_", "whsec_!!"])("refuses an empty secret: %j", (secret) => {
  expect(() => signWebhook({ ...message, secret })).toThrow("the secret is empty");
});
