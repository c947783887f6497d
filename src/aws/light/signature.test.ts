import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { signedHeaders } from "./signature.ts";

const example = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};
const place = { region: "us-east-1", service: "service" };
const nowMs = Date.UTC(2015, 7, 30, 12, 36, 0);

// AWS's own test suite of Signature Version 4: requests, and the signatures they have to have.
test.each([
  ["post-vanilla", {}, "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
  [
    "post-x-www-form-urlencoded",
    { "content-type": "application/x-www-form-urlencoded" },
    "Param1=value1",
    "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
  ],
  [
    "post-header-key-sort",
    { "my-header1": "value1" },
    "",
    "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
  ],
])("signs %s as in AWS's test suite", (_name, headers, body, signature) => {
  const request = { headers: { host: "example.amazonaws.com", ...headers }, body, ...place };
  expect(signedHeaders(request, example, nowMs)["authorization"]).toMatch(
    new RegExp(`, Signature=${signature}$`),
  );
});

/** Node's hashes, as the SDK's signer takes them. */
class Sha256 {
  readonly #hash;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    const given =
      typeof key === "string" || key === undefined ? key : Buffer.from(key as Uint8Array);
    this.#hash = given === undefined ? createHash("sha256") : createHmac("sha256", given);
  }

  update(data: string | Uint8Array) {
    this.#hash.update(data);
  }

  async digest() {
    return new Uint8Array(this.#hash.digest());
  }

  reset() {}
}

const text = fc.string({ minLength: 1, maxLength: 40, unit: fc.constantFrom(..."abcXYZ019/+=-_") });

test("signs any request as the SDK signs it", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        accessKeyId: text,
        secretAccessKey: text,
        sessionToken: fc.option(text, { nil: undefined }),
        body: fc.string({ unit: "grapheme" }),
        target: text,
        region: fc.constantFrom("us-east-1", "eu-central-1", "ap-southeast-2"),
        at: fc.date({
          min: new Date("2001-01-01"),
          max: new Date("2099-12-31"),
          noInvalidDate: true,
        }),
      }),
      async ({ accessKeyId, secretAccessKey, sessionToken, body, target, region, at }) => {
        const service = "dynamodb";
        const hostname = `dynamodb.${region}.amazonaws.com`;
        const headers = {
          host: hostname,
          "content-type": "application/x-amz-json-1.0",
          "x-amz-target": target,
        };
        const credentials = {
          accessKeyId,
          secretAccessKey,
          ...(sessionToken === undefined ? {} : { sessionToken }),
        };
        const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
        const wanted = await signer.sign(
          { method: "POST", protocol: "https:", hostname, path: "/", query: {}, headers, body },
          { signingDate: at },
        );
        // The SDK's sends the hash of the body along, and signs it.
        const hash = { "x-amz-content-sha256": createHash("sha256").update(body).digest("hex") };
        const signed = signedHeaders(
          { headers: { ...headers, ...hash }, body, region, service },
          credentials,
          at.getTime(),
        );
        expect(signed).toEqual(wanted.headers);
      },
    ),
  );
});
