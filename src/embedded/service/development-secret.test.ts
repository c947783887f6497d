// own process: it replaces modules
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { developmentSecret } from "./development-secret.ts";

vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<typeof import("node:fs")>();
  return { ...fs, linkSync: vi.fn(fs.linkSync) };
});

const env = { NODE_ENV: "development" };
let directory: string;
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "keelson-secret-")), "nested");
});
afterEach(() => rmSync(join(directory, ".."), { recursive: true }));

test("creates a secret once, readable by its owner only and ignored by git", () => {
  const secret = developmentSecret(directory, env);
  expect(Buffer.byteLength(secret)).toBeGreaterThanOrEqual(32);
  expect(developmentSecret(directory, env)).toBe(secret);
  const path = join(directory, "development-secret");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(directory, ".gitignore"), "utf8")).toBe("*\n");
  expect(readdirSync(directory).sort()).toEqual([".gitignore", "development-secret"]);
});

test("gives two directories different secrets", () => {
  expect(developmentSecret(directory, env)).not.toBe(
    developmentSecret(join(directory, "other"), env),
  );
});

test("concurrent processes get the same secret", async () => {
  const module = new URL("./development-secret.ts", import.meta.url).href;
  const script = `import(${JSON.stringify(module)}).then((m) => console.log(m.developmentSecret(process.argv[1], { NODE_ENV: "test" })))`;
  const answers = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const child = spawn(process.execPath, ["-e", script, directory], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [answer] = await Promise.all([text(child.stdout), once(child, "exit")]);
      return answer.trim();
    }),
  );
  expect(new Set(answers)).toEqual(new Set([developmentSecret(directory, env)]));
});

test("uses another process's secret when that one is linked first", () => {
  const theirs = "t".repeat(43);
  vi.mocked(linkSync).mockImplementationOnce((draft, path) => {
    writeFileSync(path, theirs);
    linkSync(draft, path);
  });
  expect(developmentSecret(directory, env)).toBe(theirs);
  expect(readdirSync(directory).sort()).toEqual([".gitignore", "development-secret"]);
});

test("on a file system without links, fails and leaves nothing behind", () => {
  vi.mocked(linkSync).mockImplementationOnce(() => {
    throw Object.assign(new Error("EPERM: operation not permitted, link"), { code: "EPERM" });
  });
  expect(() => developmentSecret(directory, env)).toThrow("EPERM");
  expect(readdirSync(directory)).toEqual([".gitignore"]);
});

test("names a file of less than 32 bytes, and does not use it", () => {
  mkdirSync(directory);
  writeFileSync(join(directory, "development-secret"), "short\n");
  expect(() => developmentSecret(directory, env)).toThrow(
    `${join(directory, "development-secret")} holds less than 32 bytes: delete it`,
  );
});

test("fails when the file cannot be read, instead of creating a new secret", () => {
  mkdirSync(join(directory, "development-secret"), { recursive: true });
  expect(() => developmentSecret(directory, env)).toThrow("EISDIR");
});

test("refuses production and Lambda", () => {
  expect(() => developmentSecret(directory, {})).toThrow(
    "The development secret is for development and tests, and NODE_ENV is not set",
  );
  expect(() => developmentSecret(directory, { ...env, AWS_LAMBDA_FUNCTION_NAME: "f" })).toThrow(
    "is not for Lambda",
  );
  expect(() => statSync(directory)).toThrow("ENOENT");
});
