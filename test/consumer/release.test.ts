import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
const copy = mkdtempSync(join(tmpdir(), "keelson-release-"));
afterEach(() => rmSync(copy, { recursive: true, force: true }));

const run = (command: string, ...args: readonly string[]) =>
  execFileSync(command, args, { cwd: copy, encoding: "utf8", stdio: "pipe" });
const manifest = () => JSON.parse(readFileSync(join(copy, "package.json"), "utf8"));

/** The steps of `npm run check` that read an address: only package.json has one. */
const check = [
  "biome check --error-on-warnings package.json",
  "node scripts/pages.mjs",
  "publint run --strict",
].join(" && ");

test("a copy of the repository can be released once its address is filled in", () => {
  run("git", "clone", "--quiet", repository, ".");
  run("git", "switch", "--quiet", "--force-create", "main");
  symlinkSync(join(repository, "node_modules"), join(copy, "node_modules"), "junction");
  appendFileSync(join(copy, ".git/info/exclude"), "node_modules\n"); // .gitignore names folders only
  cpSync(join(repository, "dist"), join(copy, "dist"), { recursive: true });
  const { scripts, ...rest } = manifest();
  const text = JSON.stringify({ ...rest, scripts: { ...scripts, check } }, undefined, 2);
  writeFileSync(join(copy, "package.json"), `${text}\n`);

  run("npm", "run", "address", "--", "https://github.com/acme/keelson");
  expect(manifest()).toMatchObject({
    repository: { type: "git", url: "git+https://github.com/acme/keelson.git" },
    homepage: "https://acme.github.io/keelson/",
  });
  const author = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com"];
  run("git", ...author, "commit", "--quiet", "--all", "--message", "build: the address");

  expect(run("npm", "run", "release", "--", "patch", "--dry-run")).toContain(
    "would go from 0.1.0 to 0.1.1",
  );
});
