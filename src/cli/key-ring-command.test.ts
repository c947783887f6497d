import { PutParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineFeature } from "../app/feature.ts";
import { buildServer } from "../app/server.ts";
import { setConfig } from "../config/change.ts";
import { createTenantConfig } from "../config/declaration.ts";
import { access } from "../identity/access.ts";
import { startTestApp, type TestApp } from "../testing/index.ts";
import { runCommand } from "./command.ts";

const vault = defineFeature("vault", (r) => {
  const rules = { read: access.authenticated, write: access.authenticated };
  return { config: r.config({ keys: { token: createTenantConfig("text", { encrypted: true, ...rules }) } }) };
});
const { token } = vault.config;
const clock = { now: () => Date.UTC(2026, 10, 21) };
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [vault], keyRing: { parameter: "/vault/ring" } }));
});
afterAll(() => app.close());

async function run(args: string, env: Readonly<Record<string, string | undefined>> = app.env) {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand(["key-ring", ...args.split(" ").filter(Boolean)], {
    env,
    clock,
    print: (line) => out.push(line),
    complain: (line) => err.push(line),
    developmentSecret: () => Promise.reject(new Error("not to be asked for")),
  });
  return { code, out, err: err.join("\n") };
}

const read = async (tenantId: string) => (await app.ctx({ id: "ann", tenantId })).config(token);
const set = async (tenantId: string, value: string) => setConfig(await app.ctx({ id: "ann", tenantId }), token, value);

async function putParameter(name: string, value: string, type: "String" | "SecureString"): Promise<void> {
  const ssm = new SSMClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
  await ssm.send(new PutParameterCommand({ Name: name, Value: value, Type: type }));
  ssm.destroy();
}

test("a ring is made, and rotated in its steps, while a running server reads and writes its secrets", async () => {
  const of = "--parameter /vault/ring";
  expect(await run(`create ${of}`)).toEqual({ code: 0, out: ["/vault/ring: made, with the key 2026-11-21"], err: "" });
  expect((await run(`add ${of}`)).err).toBe("keelson: the ring has a key 2026-11-21; say --key with another name");
  app.clock.advance(10_000);
  for (let n = 0; n < 60; n++) await set(`tenant-${n}`, `secret-${n}`);

  expect((await run(`add ${of} --key next`)).out).toEqual(["/vault/ring: added the key next; 2026-11-21 still seals"]);
  expect((await run(`list ${of}`)).out).toEqual(["2026-11-21 (active)", "next"]);
  expect((await run(`remove ${of} --key 2026-11-21`)).err).toBe(
    "keelson: 2026-11-21 is the key that seals; activate another first",
  );
  expect((await run(`activate ${of} --key next`)).code).toBe(0);
  expect(await run(`remove ${of} --key 2026-11-21`)).toMatchObject({
    code: 1,
    err: "keelson: 60 secrets of keelson-config are sealed with 2026-11-21; say rotate first",
  });
  app.clock.advance(10_000);
  const rotated = await run(`rotate ${of}`);
  expect(rotated).toMatchObject({ code: 0, err: "" });
  expect(rotated.out.at(-2)).toBe("120 items of keelson-config: 60 sealed anew");
  expect(rotated.out.at(-1)).toBe("done with the key next: 60 sealed anew, 0 written meanwhile, 0 that do not open");
  expect((await run(`remove ${of} --key 2026-11-21`)).out).toEqual(["/vault/ring: removed the key 2026-11-21"]);

  app.clock.advance(60_000);
  for (let n = 0; n < 60; n++) expect(await read(`tenant-${n}`)).toBe(`secret-${n}`);
  expect((await run(`list ${of}`)).out).toEqual(["next (active)"]);
});

test("secrets that do not open are named, left as they are, and make the rotation fail", async () => {
  await app.rows.put({
    scope: "tenant",
    tenantId: "foreign",
    key: token.id,
    value: { sealed: 1, key: "lost", data: new Uint8Array(40) },
  });
  const { code, err, out } = await run("rotate --parameter /vault/ring");
  expect(code).toBe(1);
  expect(out.at(-1)).toContain("1 that do not open");
  expect(err).toContain('config.secret_locked {"partition":"config#tenant#foreign"');
  expect(err).toContain("keelson: 1 secrets do not open with any key of the ring");
});

test("what cannot be done is said, and changes nothing", async () => {
  const before = await run("list --parameter /vault/ring");
  await putParameter("/vault/readable", "{}", "String");
  await putParameter("/vault/broken", '{"active":"a","keys":{"a":"hunter2"}}', "SecureString");
  for (const [args, message] of [
    ["create --parameter /vault/ring", "the parameter /vault/ring is there already; say add"],
    ["add --parameter /vault/ring --key next", "the ring has a key next; say --key with another name"],
    ["add --parameter /vault/ring --key a/b", "a name in the key ring is not 1 to 64 letters"],
    ["activate --parameter /vault/ring --key last", "the ring has no key last; it has next"],
    ["activate --parameter /vault/ring --key toString", "the ring has no key toString"],
    ["remove --parameter /vault/ring --key last", "the ring has no key last"],
    ["list --parameter /vault/none", "there is no parameter /vault/none; say create first"],
    ["list --parameter /vault/readable", "is no SecureString"],
    ["list --parameter /vault/broken", "the key a of the key ring is not 32 bytes in Base64"],
    ["list --parameter wrong//name", "wrong//name"],
    ["rotate --parameter /vault/ring --prefix elsewhere", "Configuration cannot be read at the moment: "],
  ] as const) {
    const { code, out, err } = await run(args);
    expect([args, code, out]).toEqual([args, 1, []]);
    expect(err).toContain(message);
    expect(err).not.toContain("hunter2");
  }
  expect(await run("list --parameter /vault/ring")).toEqual(before);
  expect((await run("list --parameter /vault/ring", { ...app.env, AWS_ENDPOINT_URL: "http://127.0.0.1:1" })).code).toBe(1);
}, 60_000);

test.each([
  ["", "no action is given"],
  ["rename --parameter /a", 'there is no action "rename"'],
  ["toString --parameter /a", 'there is no action "toString"'],
  ["list again --parameter /a", 'unexpected argument "again"'],
  ["list", "--parameter is missing"],
  ["activate --parameter /a", "--key is missing"],
  ["list --paramter /a", "--paramter"],
])("%j exits with 2 and says how it is used", async (args, message) => {
  const { code, out, err } = await run(args);
  expect([code, out]).toEqual([2, []]);
  expect(err).toContain(message);
  expect(err).toContain("Usage: keelson key-ring");
});

test("--help prints how it is used", async () => {
  expect((await run("--help")).out.join()).toContain("Actions, in the order of a rotation");
});
