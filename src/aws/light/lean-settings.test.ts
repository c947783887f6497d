import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Variables } from "../../base/process/environment.ts";
import { leanSettings, onlyForSdk } from "./lean-settings.ts";

const lambda = {
  AWS_REGION: "eu-central-1",
  AWS_ACCESS_KEY_ID: "AKIA",
  AWS_SECRET_ACCESS_KEY: "secret",
  AWS_SESSION_TOKEN: "token",
  AWS_LAMBDA_FUNCTION_NAME: "files",
  AWS_EXECUTION_ENV: "AWS_Lambda_nodejs24.x",
};
const none = () => false;

test("takes the credentials from Lambda's environment, and calls the AWS endpoint of the region", () => {
  expect(leanSettings(lambda, none)).toEqual({
    endpoint: new URL("https://dynamodb.eu-central-1.amazonaws.com/"),
    region: "eu-central-1",
    credentials: { accessKeyId: "AKIA", secretAccessKey: "secret", sessionToken: "token" },
  });
});

test("ignores what Powertools writes to the environment to identify the caller of the SDK", () => {
  expect(leanSettings({ ...lambda, AWS_SDK_UA_APP_ID: "PT/NO-OP/2.35.0/PTEnv/NA" }, none)).toEqual(
    leanSettings(lambda, none),
  );
});

test("calls the endpoint in the environment, preferring DynamoDB's own", () => {
  const everything = { ...lambda, AWS_ENDPOINT_URL: "http://127.0.0.1:4566" };
  expect(leanSettings(everything, none)?.endpoint.href).toBe("http://127.0.0.1:4566/");
  expect(
    leanSettings({ ...everything, AWS_ENDPOINT_URL_DYNAMODB: "https://db:8000/" }, none)?.endpoint
      .href,
  ).toBe("https://db:8000/");
});

test("long-term keys have no token, and the older variable for the region works too", () => {
  const { AWS_REGION, AWS_SESSION_TOKEN: _token, ...rest } = lambda;
  const settings = leanSettings({ ...rest, AWS_DEFAULT_REGION: AWS_REGION }, none);
  expect(settings).toMatchObject({
    region: "eu-central-1",
    credentials: { sessionToken: undefined },
  });
});

test.each<[string, Variables]>([
  ["no access key", { AWS_ACCESS_KEY_ID: "" }],
  ["no secret key", { AWS_SECRET_ACCESS_KEY: undefined }],
  ["no region", { AWS_REGION: "" }],
  ["a region of China", { AWS_REGION: "cn-north-1" }],
  ["a region of the government", { AWS_REGION: "us-gov-west-1" }],
  ["a region of FIPS", { AWS_REGION: "fips-us-east-1" }],
  ["a region that is a host", { AWS_REGION: "us-east-1.example.com/" }],
  ["an endpoint with a path", { AWS_ENDPOINT_URL: "http://127.0.0.1:4566/db" }],
  ["an endpoint with a password", { AWS_ENDPOINT_URL: "http://a:b@127.0.0.1:4566" }],
  ["an endpoint of another protocol", { AWS_ENDPOINT_URL: "ftp://127.0.0.1" }],
  ["an endpoint that is none", { AWS_ENDPOINT_URL: "somewhere" }],
  ...onlyForSdk.map((name) => [name, { [name]: "x" }] as [string, Variables]),
])("leaves the call to the SDK with %s", (_what, variables) => {
  expect(leanSettings({ ...lambda, ...variables }, none)).toBeUndefined();
});

test.each(["config", "credentials"])(
  "leaves the call to the SDK if the AWS CLI has its file %s",
  (name) => {
    expect(
      leanSettings({ ...lambda, HOME: "/home/ann" }, (path) => path === `/home/ann/.aws/${name}`),
    ).toBeUndefined();
  },
);

test("looks in the user's home directory if no other is set", () => {
  const seen: string[] = [];
  leanSettings(lambda, (path) => seen.push(path) === 0);
  expect(seen).toEqual([
    expect.stringMatching(/^\/.*\/\.aws\/config$/),
    expect.stringMatching(/\.aws\/credentials$/),
  ]);
  expect(leanSettings({ ...lambda, HOME: "/nonexistent" })).toBeDefined();
});

/** Of those the SDK reads: what a read of DynamoDB with credentials of the environment goes without. */
const harmless =
  /^AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|(?:DEFAULT_)?REGION(?:_ENV)?|ENDPOINT_URL|LAMBDA_\w+|EXECUTION_ENV|(?:EC2_METADATA|CONTAINER)_\w+|WEB_IDENTITY_TOKEN_FILE|ROLE_\w+|LOGIN_CACHE_DIRECTORY|MAX_ATTEMPTS|RETRY_MODE|DISABLE_CLOCK_SKEW_CORRECTION|IGNORE_CONFIGURED_ENDPOINT_URLS|(?:REQUEST|RESPONSE)_CHECKSUM_\w+|SDK_JS_\w+|SDK_UA_APP_ID|DEFAULTS_MODE_(?:ENV|CONFIG)|BEARER_TOKEN_|BACKUP)$/;

test("knows every variable that the installed SDK reads: a newer SDK may read more", () => {
  const folders = ["@aws-sdk", "@smithy"].flatMap((scope) => {
    const packages = join("node_modules", scope);
    return readdirSync(packages).map((name) => join(packages, name, "dist-cjs"));
  });
  const left = /client-(?:eventbridge|s3|sqs|ssm)|middleware-sdk-(?:s3|sqs)|presigner/;
  const texts = folders.filter((folder) => !left.test(folder)).flatMap(scripts);
  const names = new Set(texts.flatMap((text) => text.match(/\bAWS_[A-Z0-9_]+\b/g) ?? []));
  expect(names).toContain("AWS_PROFILE");
  const known = new Set<string>(onlyForSdk);
  expect([...names].filter((name) => !harmless.test(name) && !known.has(name))).toEqual([]);
});

function scripts(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".js"))
      .map((name) => readFileSync(join(folder, name), "utf8"));
  } catch {
    return []; // a package of types alone
  }
}
