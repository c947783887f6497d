import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import { findSdk } from "./sdk-now.ts";

test("the SDK is found beside the file that asks for it, and is the one that everybody else has", () => {
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
])("a bundler may call its file %s", (name) => {
  expect(foundAmong("first.mjs", name, `${name}.map`, "sqs-sdk.mjs")).toEqual({ name });
});

test("files of two builds, and none, are not it", () => {
  expect(foundAmong("dynamodb-sdk-AAAAAAAA.mjs", "dynamodb-sdk-BBBBBBBB.mjs")).toEqual({});
  expect(foundAmong("first.mjs", "dynamodb-sdk.d.mjs", "dynamodb-sdk.js")).toEqual({});
});

test.each([
  ["a bundle in CommonJS, which has no URL", ""],
  ["what is no file", "data:text/javascript,a.mjs"],
])("it is not found from %s", (_what, here) => {
  expect(findSdk(here)).toBeUndefined();
});
