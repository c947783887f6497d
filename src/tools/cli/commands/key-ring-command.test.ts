import { DescribeParametersCommand, PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { openKeyRingParameter } from "../../../aws/clients/key-ring-parameter.ts";
import { access } from "../../../base/identity/access.ts";
import { createTenantConfig } from "../../../parts/config/declare/declaration.ts";
import { setConfig } from "../../../parts/config/operate/change.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { keyRingActions } from "./key-ring-actions.ts";

const vault = defineFeature("vault", (r) => {
  const rules = { read: access.authenticated, write: access.authenticated };
  return {
    config: r.config({
      keys: { token: createTenantConfig("text", { encrypted: true, ...rules }) },
    }),
  };
});
const { token } = vault.config;
/** Real time, since SSM says when a ring was changed, plus what was waited. */
let waitedMs = 0;
const clock = { now: () => Date.now() + waitedMs };
const today = () => new Date(clock.now()).toISOString().slice(0, 10);
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp(
    buildServer({ features: [vault], keyRing: { parameter: "/vault/ring" } }),
  );
});
afterAll(() => app.close());

const run = (args: string, env: Readonly<Record<string, string | undefined>> = app.env) =>
  ranCommand(["key-ring", ...args.split(" ").filter(Boolean)], {
    env,
    clock,
    wait: async (ms) => {
      waitedMs += ms;
      app.clock.advance(ms);
    },
  });

const read = async (tenantId: string) => (await app.ctx({ id: "ann", tenantId })).config(token);
const set = async (tenantId: string, value: string) =>
  setConfig(await app.ctx({ id: "ann", tenantId }), token, value);

const clientAt = () => ({
  region: "us-east-1",
  credentials: { accessKeyId: "x", secretAccessKey: "x" },
});
const client = () =>
  new SSMClient({ endpoint: String(app.env["AWS_ENDPOINT_URL"]), ...clientAt() });

async function putParameter(
  name: string,
  value: string,
  type: "String" | "SecureString",
): Promise<void> {
  const ssm = client();
  await ssm.send(new PutParameterCommand({ Name: name, Value: value, Type: type }));
  ssm.destroy();
}

test("creates and rotates a ring step by step while a running server reads and writes its secrets", async () => {
  const of = "--parameter /vault/ring";
  expect(await run(`create ${of} --key first --kms-key alias/vault`)).toEqual({
    code: 0,
    out: ["/vault/ring: created with the key first"],
    err: "",
  });
  app.clock.advance(10_000);
  for (let n = 0; n < 60; n++) await set(`tenant-${n}`, `secret-${n}`);
  expect((await run(`remove ${of} --key first`)).err).toBe(
    "keelson: first is the key that seals; activate another first",
  );

  expect((await run(`add ${of}`)).out).toEqual([
    `/vault/ring: added the key ${today()}; first still seals`,
  ]);
  expect((await run(`add ${of}`)).err).toBe(
    `keelson: the ring has a key ${today()}; give another name with --key`,
  );
  expect((await run(`list ${of}`)).out).toEqual([
    "key         state",
    "first       active",
    `${today()}  decrypts`,
  ]);
  const key = today();
  expect((await run(`activate ${of} --key ${key}`)).out).toEqual([
    expect.stringMatching(/^waiting \d+ s, until running servers know of the last change$/),
    `/vault/ring: the key ${key} seals from now on`,
  ]);
  expect((await run(`remove ${of} --key first`)).err).toContain(
    "the ring was changed less than five minutes ago",
  );
  const rotated = await run(`rotate ${of}`);
  expect(rotated).toMatchObject({ code: 0, err: "" });
  // Whether it has to wait once more depends on how long the commands before took.
  expect(rotated.out.filter((line) => !line.startsWith("waiting "))).toEqual([
    expect.stringMatching(/^100 items of keelson-config: \d+ sealed again$/),
    "120 items of keelson-config: 60 sealed again",
    `keelson-config: 60 sealed again with ${key}, 0 changed during the run, 0 that do not open`,
  ]);
  // What the server has in its cache was sealed with the key that goes now.
  for (let n = 0; n < 60; n++) expect(await read(`tenant-${n}`)).toBe(`secret-${n}`);
  waitedMs += 310_000;
  expect((await run(`remove ${of} --key first`)).out).toEqual([
    "keelson-config: no secret is sealed with first",
    expect.stringMatching(
      /^\/vault\/ring: removed the key first; messages that it signed are accepted until \d{4}-/,
    ),
  ]);
  app.clock.advance(10_000);
  await set("another", "reads the ring");
  app.faults.before("BatchGetItem", 1).fail("InternalServerError");
  for (let n = 0; n < 60; n++) expect(await read(`tenant-${n}`)).toBe(`secret-${n}`);
  app.clock.advance(60_000);
  for (let n = 0; n < 60; n++) expect(await read(`tenant-${n}`)).toBe(`secret-${n}`);
  const [active, removed, ...more] = (await run(`list ${of} --json`)).out.map(
    (line) => JSON.parse(line) as Record<string, string>,
  );
  expect([active, more]).toEqual([{ key, state: "active" }, []]);
  expect(removed).toMatchObject({ key: "first", state: "removed" });
  const until = removed?.["verifiesMessagesUntil"] ?? "";
  expect((Date.parse(until) - clock.now()) / 86_400_000).toBeCloseTo(379, 2);
});

test("a removed key verifies messages until it expires or is forgotten, and its name is free again", async () => {
  const of = "--parameter /vault/left";
  await run(`create ${of} --key k1`);
  for (const [old, young] of [
    ["k1", "k2"],
    ["k2", "k3"],
  ]) {
    await run(`add ${of} --key ${young}`);
    await run(`activate ${of} --key ${young}`);
    waitedMs += 310_000;
    expect((await run(`remove ${of} --key ${old} --prefix keelson`)).code).toBe(0);
  }
  expect((await run(`list ${of}`)).out).toEqual([
    "key  state    verifiesMessagesUntil",
    "k3   active   -",
    expect.stringMatching(/^k1 {3}removed {2}2/),
    expect.stringMatching(/^k2 {3}removed {2}2/),
  ]);
  expect((await run(`add ${of} --key k1`)).err).toBe(
    "keelson: the ring had a key k1, which still verifies messages; give another name with --key",
  );
  expect((await run(`forget ${of} --key k3`)).err).toBe("keelson: the ring has no removed key k3");
  expect((await run(`forget ${of} --key toString`)).code).toBe(1);
  expect((await run(`forget ${of} --key k1`)).out).toEqual([
    "/vault/left: messages signed with k1 are refused within five minutes",
  ]);
  expect((await run(`list ${of}`)).out).toEqual([
    "key  state    verifiesMessagesUntil",
    "k3   active   -",
    expect.stringMatching(/^k2 {3}removed {2}2/),
  ]);
  waitedMs += 379 * 24 * 60 * 60 * 1000;
  expect((await run(`list ${of}`)).out).toEqual(["key  state", "k3   active"]);
  expect((await run(`add ${of} --key k2`)).code).toBe(0);
  expect((await run(`forget ${of} --key k2`)).err).toBe("keelson: the ring has no removed key k2");
});

test("the parameter stays encrypted with the KMS key that it was created with", async () => {
  const ssm = client();
  const ParameterFilters = [{ Key: "Name", Option: "Equals", Values: ["/vault/ring"] }];
  const { Parameters } = await ssm.send(new DescribeParametersCommand({ ParameterFilters }));
  ssm.destroy();
  expect(Parameters).toMatchObject([{ KeyId: "alias/vault", Type: "SecureString" }]);
});

test("refuses to remove a key that secrets of any listed server still need", async () => {
  const of = "--parameter /vault/shared";
  await run("create --parameter /vault/dated");
  expect((await run("list --parameter /vault/dated")).out.at(-1)).toBe(`${today()}  active`);
  await run(`create ${of} --key k1`);
  await run(`add ${of} --key k2`);
  await run(`activate ${of} --key k2`);
  waitedMs += 310_000;
  const row = { scope: "tenant", tenantId: "shared", key: token.id, version: 1 } as const;
  await app.rows.put({ ...row, value: { sealed: 1, key: "k1", data: new Uint8Array(40) } });
  expect((await run(`remove ${of} --key k1`)).err).toBe(
    "keelson: 1 secrets of keelson-config are sealed with k1; run rotate first",
  );
  await app.rows.put({ ...row, version: 2, value: "gone" });
  expect((await run(`remove ${of} --key k1 --prefix elsewhere --prefix keelson`)).code).toBe(1);
  expect((await run(`list ${of}`)).out).toEqual(["key  state", "k1   decrypts", "k2   active"]);
});

test("with --bind-version, a rotation binds secrets to their rows' versions under the same active key", async () => {
  const own = await startTestApp(
    buildServer({ features: [vault], keyRing: { parameter: "/vault/bound" } }),
  );
  await run("create --parameter /vault/bound --key k1", own.env);
  own.clock.advance(10_000);
  await setConfig(await own.ctx({ id: "ann", tenantId: "acme" }), token, "hunter2");
  const last = async (args: string) =>
    (await run(`rotate --parameter /vault/bound ${args}`, own.env)).out.at(-1);
  expect(await last("")).toContain(": 0 sealed again with k1");
  expect(await last("--bind-version")).toContain(": 1 sealed again with k1");
  expect(await last("--bind-version")).toContain(": 0 sealed again with k1");
  own.clock.advance(60_000);
  expect(await (await own.ctx({ id: "ann", tenantId: "acme" })).config(token)).toBe("hunter2");
  await own.close();
});

test("refuses to overwrite a ring that was changed concurrently", async () => {
  const of = "--parameter /vault/busy";
  await run(`create ${of} --key k1`);
  await run(`add ${of} --key k2`);
  const stored = await openKeyRingParameter("/vault/busy", {
    ...clientAt(),
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
  });
  const context = {
    env: app.env,
    clock,
    print: () => {},
    complain: () => {},
    developmentSecret: () => Promise.reject(),
    wait: async () => {},
  };
  const call = {
    parameter: "/vault/busy",
    key: "k3",
    kmsKey: undefined,
    prefixes: ["keelson"],
    bindVersion: false,
    json: false,
  };
  const slow = {
    ...stored,
    replace: (text: string, seen: number) =>
      run(`add ${of} --key k4`).then(() => stored.replace(text, seen)),
  };
  await expect(keyRingActions.add?.({ ...context, ...call, stored: slow })).rejects.toThrow(
    "another process changed /vault/busy",
  );
  stored.close();
});

test("reports secrets that cannot be opened, leaves them unchanged, and fails the rotation", async () => {
  await app.rows.put({
    scope: "tenant",
    tenantId: "foreign",
    key: token.id,
    value: { sealed: 1, key: "lost", data: new Uint8Array(40) },
  });
  const { code, err, out } = await run("rotate --parameter /vault/ring");
  expect(code).toBe(1);
  expect(out.join()).toContain("1 that do not open");
  expect(err).toContain('config.secret_locked {"partition":"config#tenant#foreign"');
  expect(err).toContain("keelson: not done: 1 secrets do not open with any key of the ring");
});

test("explains each action that fails, and changes nothing", async () => {
  const before = await run("list --parameter /vault/ring");
  await putParameter("/vault/readable", "{}", "String");
  await putParameter("/vault/broken", '{"active":"a","keys":{"a":"hunter2"}}', "SecureString");
  for (const [args, message] of [
    ["create --parameter /vault/ring", "the parameter /vault/ring exists already; use add"],
    ["add --parameter /vault/ring --key a/b", "a name in the key ring is not 1 to 64 letters"],
    ["activate --parameter /vault/ring --key last", "the ring has no key last; it has "],
    ["activate --parameter /vault/ring --key toString", "the ring has no key toString"],
    ["remove --parameter /vault/ring --key last", "the ring has no key last"],
    ["list --parameter /vault/none", "there is no parameter /vault/none; run create first"],
    ["list --parameter /vault/readable", "is not a SecureString"],
    ["list --parameter /vault/broken", "the key a of the key ring is not 32 bytes in Base64"],
    ["list --parameter wrong//name", "wrong//name"],
    [
      "rotate --parameter /vault/ring --prefix elsewhere",
      "Configuration cannot be read at the moment: ",
    ],
  ] as const) {
    const { code, out, err } = await run(args);
    expect([args, code, out]).toEqual([args, 1, []]);
    expect(err).toContain(message);
    expect(err).not.toContain("hunter2");
  }
  expect(await run("list --parameter /vault/ring")).toEqual(before);
  expect(
    (
      await run("list --parameter /vault/ring", {
        ...app.env,
        AWS_ENDPOINT_URL: "http://127.0.0.1:1",
      })
    ).code,
  ).toBe(1);
});

test.each([
  ["", "no action is given"],
  ["rename --parameter /a", 'there is no action "rename"'],
  ["toString --parameter /a", 'there is no action "toString"'],
  ["list again --parameter /a", 'unexpected argument "again"'],
  ["list", "--parameter is missing"],
  ["activate --parameter /a", "--key is missing"],
  ["forget --parameter /a", "--key is missing"],
  ["list --paramter /a", "--paramter"],
  ["rotate --parameter /a --prefix a/b", '--prefix "a/b"'],
  ["add --parameter /a --json", "--json is an option of list"],
])("%j exits with 2 and names the help", async (args, message) => {
  const { code, out, err } = await run(args);
  expect([code, out]).toEqual([2, []]);
  expect(err).toContain(message);
  expect(err).toContain("Run `keelson key-ring --help`.");
});

test("--help prints the usage", async () => {
  expect((await run("--help")).out.join()).toContain("Actions, in the order of a rotation");
});
