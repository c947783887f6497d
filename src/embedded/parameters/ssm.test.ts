import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSsm } from "./ssm.ts";

type Ssm = ReturnType<typeof openSsm>;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-ssm-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const put = (ssm: Ssm, Name: string, more: object = {}) =>
  ssm.call("PutParameter", { Name, Value: "v", Type: "String", ...more });
const get = async (ssm: Ssm, Name: string) => {
  const answer = await ssm.call("GetParameter", { Name, WithDecryption: true });
  return (answer as { Parameter: Record<string, unknown> }).Parameter; // what GetParameter answers
};

test("parameters and secrets survive a restart, and no secret is on the disk in clear text", async () => {
  const first = openSsm({ directory });
  await put(first, "/app/plain", { Value: "seen" });
  await put(first, "/app/secret", { Value: "whisper-1", Type: "SecureString" });
  await put(first, "/app/secret", {
    Value: "whisper-2",
    Overwrite: true,
    Type: undefined,
    Description: "d",
  });

  const second = openSsm({ directory });
  expect(await get(second, "/app/plain")).toMatchObject({ Value: "seen", Version: 1 });
  expect(await get(second, "/app/secret")).toMatchObject({
    Value: "whisper-2",
    Version: 2,
    Type: "SecureString",
  });
  await second.call("DeleteParameter", { Name: "/app/plain" });
  await expect(get(openSsm({ directory }), "/app/plain")).rejects.toMatchObject({
    type: "ParameterNotFound",
  });

  const files = readdirSync(directory).map((name) => readFileSync(join(directory, name), "utf8"));
  expect(files.length).toBeGreaterThan(1);
  for (const content of files) expect(content).not.toContain("whisper");
});

test("does not open a sealed value that was moved to another parameter", async () => {
  await put(openSsm({ directory }), "/app/secret", { Type: "SecureString" });
  const path = join(directory, "ssm.json");
  writeFileSync(path, readFileSync(path, "utf8").replace("/app/secret", "/app/other"));

  await expect(get(openSsm({ directory }), "/app/other")).rejects.toThrow();
});

test("names a file that the embedded stack did not write", () => {
  writeFileSync(join(directory, "ssm.json"), "[{");
  expect(() => openSsm({ directory })).toThrow(/ssm\.json was not written by the embedded stack/);
  rmSync(join(directory, "ssm.json"));
  mkdirSync(join(directory, "ssm.json"));
  expect(() => openSsm({ directory })).toThrow("EISDIR");
});

test("places a name without a slash at the root", async () => {
  const ssm = openSsm({ region: "eu-west-1", clock: { now: () => 5000 } });
  await put(ssm, "alone");
  expect(await get(ssm, "alone")).toMatchObject({
    ARN: "arn:aws:ssm:eu-west-1:000000000000:parameter/alone",
    LastModifiedDate: 5,
  });
  expect(await ssm.call("GetParametersByPath", { Path: "/" })).toMatchObject({
    Parameters: [{ Name: "alone" }],
  });
});

test.each([
  ["GetParametersByPath", { Path: "/a", NextToken: "!" }, "InvalidNextToken"],
  ["GetParametersByPath", { Path: "/a", NextToken: 7 }, "InvalidNextToken"],
  ["GetParametersByPath", { Path: "/a", MaxResults: 0 }, "ValidationException"],
  ["GetParametersByPath", { Path: "/a", MaxResults: 1.5 }, "ValidationException"],
  ["GetParametersByPath", { Path: "/a", MaxResults: "3" }, "ValidationException"],
  ["GetParametersByPath", { Path: "/a", ParameterFilters: [{}] }, "ValidationException"],
  ["GetParametersByPath", {}, "ValidationException"],
  ["GetParameters", { Names: [] }, "ValidationException"],
  ["GetParameters", { Names: [1] }, "ValidationException"],
  ["GetParameters", { Names: "a" }, "ValidationException"],
  ["GetParameter", { Name: 7 }, "ValidationException"],
  ["PutParameter", { Name: "/a", Value: "", Type: "String" }, "ValidationException"],
  ["PutParameter", { Name: "/a", Value: "v", Type: "Number" }, "ValidationException"],
  ["LabelParameterVersion", {}, "UnknownOperationException"],
  ["DescribeParameters", {}, "ValidationException"],
  [
    "DescribeParameters",
    { ParameterFilters: [{ Key: "Type", Option: "Equals", Values: ["String"] }] },
    "ValidationException",
  ],
])("refuses %s of %o with %s", async (operation, input, type) => {
  const outcome = openSsm().call(operation, input);
  await expect(outcome).rejects.toMatchObject({
    status: 400,
    type: expect.stringMatching(new RegExp(`${type}$`)),
  });
});

test("an empty list of filters counts as none, and the last page has no token", async () => {
  const ssm = openSsm();
  for (const name of ["/a/2", "/a/1"]) await put(ssm, name);
  const first = await ssm.call("GetParametersByPath", {
    Path: "/a/",
    MaxResults: 1,
    ParameterFilters: [],
  });
  expect(first).toMatchObject({ Parameters: [{ Name: "/a/1" }], NextToken: expect.any(String) });
  const rest = await ssm.call("GetParametersByPath", {
    Path: "/a/",
    NextToken: (first as { NextToken: string }).NextToken,
  });
  expect(rest).toEqual({ Parameters: [expect.objectContaining({ Name: "/a/2" })] });
});

test("describes parameters by name, with the KMS key of each SecureString", async () => {
  const ssm = openSsm();
  await ssm.call("PutParameter", {
    Name: "/a/own",
    Value: "v",
    Type: "SecureString",
    KeyId: "alias/mine",
  });
  await ssm.call("PutParameter", { Name: "/a/default", Value: "v", Type: "SecureString" });
  await ssm.call("PutParameter", { Name: "/a/text", Value: "v", Type: "String" });
  const described = await ssm.call("DescribeParameters", {
    ParameterFilters: [
      { Key: "Name", Option: "Equals", Values: ["/a/own", "/a/default", "/a/text", "/a/none"] },
    ],
  });
  expect(described).toMatchObject({
    Parameters: [
      { Name: "/a/own", KeyId: "alias/mine" },
      { Name: "/a/default", KeyId: "alias/aws/ssm" },
      { Name: "/a/text" },
    ],
  });
  for (const wrong of [
    [{ Key: "Name", Option: "Equals" }],
    [{ Key: "Name", Option: "BeginsWith", Values: [] }],
    [{}, {}],
  ]) {
    await expect(ssm.call("DescribeParameters", { ParameterFilters: wrong })).rejects.toThrow(
      "by their names only",
    );
  }
});
