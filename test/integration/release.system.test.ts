import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
/** A repository with the script of this one, whose check and recorder do next to nothing. */
let root: string;

const changelog =
  "# Changelog\n\n## [Unreleased]\n\n- A door.\n\n## [0.1.0] - 2026-01-01\n\n- A room.\n";

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "keelson-release-"));
  const version = "0.1.0";
  const scripts = { check: "node check.mjs" };
  const address = { type: "git", url: "git+https://github.com/acme/keelson.git" };
  const manifest = { name: "keelson", version, scripts, files: ["dist"], repository: address };
  file("package.json", JSON.stringify(manifest));
  file(
    "package-lock.json",
    JSON.stringify({
      name: "keelson",
      version,
      lockfileVersion: 3,
      packages: { "": { name: "keelson", version } },
    }),
  );
  file("CHANGELOG.md", changelog);
  file(".gitignore", ".dist-*/\ndist/\n");
  file("check.mjs", "");
  file("dist/index.js", "export const packed = true;\n");
  // It gets the package as it is packed.
  file(
    "test/compatibility/record.ts",
    `import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
     const { version } = JSON.parse(readFileSync(process.argv[2] + "/package.json", "utf8"));
     const kept = import.meta.dirname + "/kept/" + version;
     mkdirSync(kept, { recursive: true });
     writeFileSync(kept + "/keelson.js", readFileSync(process.argv[2] + "/dist/index.js"));`,
  );
  mkdirSync(join(root, "scripts"));
  for (const name of ["release.mjs", "address.mjs"])
    cpSync(join(repository, "scripts", name), join(root, "scripts", name));
  await git("init", "--quiet", "--initial-branch", "main");
  await git("config", "user.name", "Tester");
  await git("config", "user.email", "tester@example.com");
  await git("config", "commit.gpgSign", "false");
  await commit("feat: a door");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test("a release makes one commit and a tag, with version, dated changelog and kept package, and prints the next step", async () => {
  const { code, stdout } = await release("minor");
  const today = new Date().toISOString().slice(0, 10);

  expect(code).toBe(0);
  expect(stdout).toContain("git push --atomic origin main v0.2.0");
  expect(JSON.parse(read("package.json"))).toMatchObject({ version: "0.2.0" });
  expect(JSON.parse(read("package-lock.json"))).toMatchObject({
    version: "0.2.0",
    packages: { "": { version: "0.2.0" } },
  });
  expect(read("CHANGELOG.md")).toBe(
    changelog.replace("## [Unreleased]\n", `## [Unreleased]\n\n## [0.2.0] - ${today}\n`),
  );
  expect(read("test/compatibility/kept/0.2.0/keelson.js")).toBe("export const packed = true;\n");
  expect(await git("status", "--porcelain")).toBe("");
  expect(await git("log", "--format=%s")).toBe("chore(release): 0.2.0\nfeat: a door");
  expect(await git("describe", "--exact-match")).toBe("v0.2.0");

  // Nothing has changed since: there is nothing to release.
  expect(await release("patch")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("has no entry under [Unreleased]"),
  });
});

test("the version of package.json can be released until it is tagged, and its kept package stays unchanged", async () => {
  file("test/compatibility/kept/0.1.0/keelson.js", "kept before");
  await commit("test: kept");

  expect(await release("0.1.0")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("stays unchanged"),
  });
  expect(read("test/compatibility/kept/0.1.0/keelson.js")).toBe("kept before");
  expect(await release("0.1.0")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("the tag v0.1.0 exists"),
  });
});

test("a dry run prints what it would do, and changes nothing", async () => {
  const { code, stdout } = await release("1.0.0", "--dry-run");

  expect([code, stdout]).toEqual([0, expect.stringContaining("would go from 0.1.0 to 1.0.0")]);
  await expectUnchanged();
});

test.each([
  ["a word", ["next"], "next is not a version"],
  [
    "a prerelease, which the workflow would publish as the latest",
    ["1.0.0-rc.1"],
    "1.0.0-rc.1 is not a version",
  ],
  ["an older version", ["0.0.9"], "0.0.9 is older than 0.1.0"],
  ["no version", [], "expected one version"],
  ["two versions", ["patch", "minor"], "expected one version"],
  ["an unknown option", ["patch", "--force"], "Unknown option '--force'"],
])("%s is refused before anything is done", async (_what, args, message) => {
  expect(await release(...args)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(message),
  });
  await expectUnchanged();
});

test("a release is refused while package.json names no repository, and one command names it", async () => {
  const { repository: _, ...manifest } = JSON.parse(read("package.json"));
  file("package.json", JSON.stringify(manifest));
  await commit("build: no address");
  expect(await release("patch", "--dry-run")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("npm run address -- https://github.com/<owner>/<name>"),
  });

  const address = (...args: string[]) =>
    execute(process.execPath, [join(root, "scripts/address.mjs"), ...args]);
  expect(await address("https://example.com/acme")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is not the address of a repository"),
  });
  expect(await address()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("expected one address"),
  });
  expect(await address("https://github.com/Acme/keelson.git")).toMatchObject({ code: 0 });
  expect(JSON.parse(read("package.json"))).toEqual({
    ...manifest,
    repository: { type: "git", url: "git+https://github.com/Acme/keelson.git" },
    homepage: "https://acme.github.io/keelson/",
    bugs: { url: "https://github.com/Acme/keelson/issues" },
  });
  await commit("build: the address");
  expect(await release("patch", "--dry-run")).toMatchObject({ code: 0 });
});

test("a release is refused with uncommitted changes, on another branch, and if a check fails", async () => {
  file("new.txt", "");
  expect(await release("patch")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("?? new.txt"),
  });
  rmSync(join(root, "new.txt"));

  await git("switch", "--quiet", "--create", "topic");
  expect(await release("patch")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("this is topic; run: git switch main"),
  });
  await git("switch", "--quiet", "main");

  file("check.mjs", 'console.error("a wrong type"); process.exit(1);');
  await commit("feat: a wrong type");
  const { code, stderr } = await release("patch");
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/npm run check fails.*\n.*a wrong type/),
  ]);
  expect(await git("tag", "--list")).toBe("");
  expect(await git("status", "--porcelain")).toBe("");
});

test("a failed recording leaves nothing half done", async () => {
  file(
    "test/compatibility/record.ts",
    `${read("test/compatibility/record.ts")}\nthrow new Error("no store");`,
  );
  await commit("test: fails");

  const { code, stderr } = await release("patch");
  expect([code, stderr]).toEqual([1, expect.stringContaining("the checkout is unchanged")]);
  expect(stderr).toContain("no store");
  await expectUnchanged("test: fails");
});

test("a commit or tag that git refuses leaves nothing half done", async () => {
  const hook = join(root, ".git/hooks/reference-transaction");
  writeFileSync(hook, '#!/bin/sh\n[ "$1" != prepared ] || ! grep -q refs/tags/\n');
  chmodSync(hook, 0o755);

  expect(await release("patch")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("git tag failed"),
  });
  await expectUnchanged();
});

test("--help prints the usage, and does nothing", async () => {
  expect(await release("--help")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("--dry-run  "),
  });
  await expectUnchanged();
});

test("the workflow publishes only the tagged version, of a package that names its repository", async () => {
  cpSync(join(repository, "scripts/publishable.mjs"), join(root, "scripts/publishable.mjs"));
  const publishable = (tag: string, name: string) =>
    execute(process.execPath, [join(root, "scripts/publishable.mjs")], {
      GITHUB_REF_NAME: tag,
      GITHUB_REPOSITORY: name,
    });

  expect(await publishable("v0.1.0", "acme/keelson")).toMatchObject({ code: 0, stderr: "" });

  const { code, stderr } = await publishable("v0.2.0", "other/fork");
  expect(code).toBe(1);
  expect(stderr).toContain("the tag v0.2.0 is not v0.1.0");
  expect(stderr).toContain("provenance needs git+https://github.com/other/fork.git");
  expect(stderr).toContain("run: npm run address -- https://github.com/other/fork");
});

async function expectUnchanged(last = "feat: a door"): Promise<void> {
  expect(await git("status", "--porcelain")).toBe("");
  expect(await git("log", "-1", "--format=%s")).toBe(last);
  expect(await git("tag", "--list")).toBe("");
  expect(read("CHANGELOG.md")).toBe(changelog);
  expect(JSON.parse(read("package.json"))).toMatchObject({ version: "0.1.0" });
  expect(existsSync(join(root, "test/compatibility/kept"))).toBe(false);
  expect(globSync(".dist-*", { cwd: root })).toEqual([]);
}

function read(name: string): string {
  return readFileSync(join(root, name), "utf8");
}

function file(name: string, text: string): void {
  mkdirSync(dirname(join(root, name)), { recursive: true });
  writeFileSync(join(root, name), text);
}

async function commit(message: string): Promise<void> {
  await git("add", "--all");
  await git("commit", "--quiet", "--message", message);
}

async function git(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await execute("git", args);
  if (code !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  return stdout.trim();
}

function release(...args: readonly string[]): ReturnType<typeof execute> {
  return execute(process.execPath, [join(root, "scripts/release.mjs"), ...args]);
}

function execute(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      { cwd: root, env: { ...process.env, ...env } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}
