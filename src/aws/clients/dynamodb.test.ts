import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import { findSdk } from "./dynamodb.ts";

test("finds the SDK next to the importing file, and it is the SDK that all others use", () => {
  expect(findSdk()?.().DynamoDBDocumentClient).toBe(DynamoDBDocumentClient);
});

/** What is found from `first.mjs` in a folder with these files, each of which exports its name. */
function foundAmong(...names: string[]): unknown {
  const folder = mkdtempSync(join(tmpdir(), "keelson-sdk-"));
  try {
    for (const name of names)
      writeFileSync(join(folder, name), `export const name = ${JSON.stringify(name)};\n`);
    return { ...findSdk(pathToFileURL(join(folder, "first.mjs")).href)?.() };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each([
  "dynamodb-sdk.mjs",
  "dynamodb-sdk-BJ6GiPP1.mjs",
  "dynamodb-sdk-OFLJ2K3A.mjs",
  "dynamodb-sdk.3f2a9c01.mjs",
])("accepts the file name %s of a bundler", (name) => {
  expect(foundAmong("first.mjs", name, `${name}.map`, "messaging-sdk.mjs")).toEqual({ name });
});

test("rejects files of two builds, and no file", () => {
  expect(foundAmong("dynamodb-sdk-AAAAAAAA.mjs", "dynamodb-sdk-BBBBBBBB.mjs")).toEqual({});
  expect(foundAmong("first.mjs", "dynamodb-sdk.d.mjs", "dynamodb-sdk.js")).toEqual({});
});

test.each([
  ["a bundle in CommonJS, which has no URL", ""],
  ["what is no file", "data:text/javascript,a.mjs"],
])("does not find the SDK from %s", (_what, here) => {
  expect(findSdk(here)).toBeUndefined();
});
