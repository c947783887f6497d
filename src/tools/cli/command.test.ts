import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAuthenticator } from "../../base/identity/authenticator.ts";
import { developmentSecret } from "../../embedded/service/development-secret.ts";
import { runCommand } from "./command.ts";
import { commandNames } from "./command-table.ts";

const secret = "a secret of thirty-two bytes and more";
const clock = { now: () => 1_700_000_000_000 };

async function run(
  args: readonly string[],
  given: { env?: Record<string, string>; developmentSecret?: () => Promise<string> } = {},
) {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand(args, {
    env: { KEELSON_AUTH_SECRET: secret },
    clock,
    print: (line) => out.push(line),
    complain: (line) => err.push(line),
    wait: () => Promise.reject(new Error("nothing is waited for")),
    developmentSecret: () => Promise.reject(new Error("not to be asked for")),
    ...given,
  });
  return { code, out, err: err.join("\n") };
}

describe("keelson token", () => {
  test("prints one token with the requested claims", async () => {
    const { code, out, err } = await run([
      "token",
      "--tenant",
      "acme",
      "--user",
      "ann",
      "--roles",
      "admin, x,,admin",
    ]);
    expect({ code, lines: out.length, err }).toEqual({ code: 0, lines: 1, err: "" });
    expect(decodeJwt(out[0] ?? "")).toEqual({
      sub: "ann",
      tenantId: "acme",
      roles: ["admin", "x", "admin"],
      iat: 1_700_000_000,
      exp: 1_700_086_400,
    });
  });

  test("sets no roles by default, and accepts its options in any order and form", async () => {
    const { out } = await run([
      "token",
      "--expires-in-seconds=60",
      "--user=ann",
      "--tenant=acme",
      "--issuer=i",
      "--audience=a",
    ]);
    expect(decodeJwt(out[0] ?? "")).toEqual({
      sub: "ann",
      tenantId: "acme",
      roles: [],
      iss: "i",
      aud: "a",
      iat: 1_700_000_000,
      exp: 1_700_000_060,
    });
  });

  test.each<[string, Record<string, string>]>([
    ["is not set", {}],
    ["is empty", { KEELSON_AUTH_SECRET: "" }],
  ])("signs with the development secret when KEELSON_AUTH_SECRET %s", async (_, env) => {
    const developmentSecret = () => Promise.resolve("d".repeat(32));
    const { out } = await run(["token", "--tenant", "acme", "--user", "ann"], {
      env,
      developmentSecret,
    });
    const authenticator = createAuthenticator({ auth: { secret: "d".repeat(32) }, clock });
    expect(
      await authenticator.authenticate({
        authorization: `Bearer ${out[0]}`,
        gatewayClaims: undefined,
      }),
    ).toMatchObject({
      user: { id: "ann" },
    });
  });

  test.each<[string, Parameters<typeof run>[1], RegExp]>([
    [
      "is too short",
      { env: { KEELSON_AUTH_SECRET: "hunter2" } },
      /^keelson: KEELSON_AUTH_SECRET is refused: .* has 7 bytes.*; set a string/,
    ],
    [
      "may not be used",
      { env: {}, developmentSecret: () => Promise.reject(new Error("this is production")) },
      /^keelson: KEELSON_AUTH_SECRET is not set, so the development secret is needed: this is production$/,
    ],
    // A rejection that is no Error still has to be told.
    ["fails oddly", { env: {}, developmentSecret: () => Promise.reject("locked") }, /: locked$/],
  ])("exits with 1 when the secret %s, without printing it", async (_, given, message) => {
    const { code, out, err } = await run(["token", "--tenant", "acme", "--user", "ann"], given);
    expect({ code, out }).toEqual({ code: 1, out: [] });
    expect(err).toMatch(message);
    expect(err).not.toContain("hunter2");
  });
});

describe("keelson", () => {
  test.each([
    [[]],
    [["--help"]],
    [["-h"]],
    [["help"]],
    [["help", "help"]],
    [["help", "--help"]],
    [["help", "-h"]],
  ])("lists all commands in groups for %j", async (args) => {
    const { code, out, err } = await run(args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const text = out.join("\n");
    expect(text).toMatch(/^Usage: keelson <command> \[options\]\n\nStart:\n {2}init {2,}creates/);
    for (const name of commandNames) expect(text).toContain(`\n  ${name} `);
  });

  test.each(commandNames)("%s has the same help in three forms", async (name) => {
    const { code, out } = await run([name, "--help"]);
    expect({ code, out }).toEqual({
      code: 0,
      out: [expect.stringMatching(`^Usage: keelson ${name} `)],
    });
    const optionLines = String(out).match(/^ {2}--.*/gm) ?? [];
    expect(optionLines.filter((line) => !/^ {2}--.+? {2}/.test(line))).toEqual([]);
    expect(await run([name, "-h"])).toEqual({ code: 0, out, err: "" });
    expect(await run(["help", name])).toEqual({ code: 0, out, err: "" });
  });

  test.each(["--version", "-v"])("prints its version for %s", async (option) => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    expect(await run([option])).toEqual({ code: 0, out: [version], err: "" });
  });
});

describe("the program", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "keelson-cli-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const program = join(import.meta.dirname, "./main.ts");
  /** Runs in an empty folder, with nothing of this process's environment. */
  const execute = (args: readonly string[], env: Record<string, string> = {}) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(
        process.execPath,
        [program, ...args],
        { cwd: folder, env },
        (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : error.code, stdout, stderr });
        },
      );
    });
  const ann = ["token", "--tenant", "acme", "--user", "ann", "--roles", "admin"];

  test("prints a token and nothing else", async () => {
    const { code, stdout, stderr } = await execute(ann, { KEELSON_AUTH_SECRET: secret });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    const clock = { now: () => Date.now() };
    const authorization = `Bearer ${stdout.trim()}`;
    expect(
      await createAuthenticator({ auth: { secret }, clock }).authenticate({
        authorization,
        gatewayClaims: undefined,
      }),
    ).toEqual({
      user: { id: "ann", tenantId: "acme", roles: ["admin"], kind: "user" },
    });
  });

  test("prints usage errors on stderr and exits with 2", async () => {
    const { code, stdout, stderr } = await execute(["token"], { KEELSON_AUTH_SECRET: secret });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe(
      "keelson: --tenant is missing; use --tenant <id>\nRun `keelson token --help`.\n",
    );
  });

  test("exits with 1 and names the missing variable when it runs in production without a secret", async () => {
    const { code, stdout, stderr } = await execute(ann, { NODE_ENV: "production" });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("KEELSON_AUTH_SECRET");
  });

  test("signs with the same development secret on each run", async () => {
    const [one, two] = [
      await execute(ann, { NODE_ENV: "development" }),
      await execute(ann, { NODE_ENV: "development" }),
    ];
    const ofFolder = developmentSecret(join(folder, ".keelson"), { NODE_ENV: "development" });
    const authenticator = createAuthenticator({
      auth: { secret: ofFolder },
      clock: { now: () => Date.now() },
    });
    for (const { code, stdout } of [one, two]) {
      expect(code).toBe(0);
      expect(
        await authenticator.authenticate({
          authorization: `Bearer ${stdout.trim()}`,
          gatewayClaims: undefined,
        }),
      ).toMatchObject({
        user: { id: "ann" },
      });
    }
  });

  test.each([
    ["ends the process", "process.exit(0);"],
    ["ends the process with a failure", "process.exit(1);"],
    ["is never loaded", "await new Promise(() => {});"],
  ])("exits with 2 when a module %s", async (_what, source) => {
    await writeFile(join(folder, "module.mjs"), source);
    const { code, stdout, stderr } = await execute(["doctor", "module.mjs"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(
      "keelson: module.mjs has ended the process while it was loaded; name one that only builds the server",
    );
  });

  test("exits with 0 when the reader closes the pipe early", async () => {
    const child = spawn(process.execPath, [program, "--help"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout.destroy();
    let complaints = "";
    child.stderr.on("data", (chunk: Buffer) => {
      complaints += chunk.toString();
    });
    expect([await once(child, "close"), complaints]).toEqual([[0, null], ""]);
  });
});
