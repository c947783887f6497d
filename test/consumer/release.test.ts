import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
const copy = mkdtempSync(join(tmpdir(), "keelson-release-"));
afterEach(() => rmSync(copy, { recursive: true, force: true }));

const run = (command: string, ...args: readonly string[]) =>
  execFileSync(command, args, { cwd: copy, encoding: "utf8", stdio: "pipe" });

test("a copy of the repository can be released once its address is filled in", {
  timeout: 900_000,
}, async () => {
  // Safe: so it is declared in scripts/install.mjs, which has no types.
  const { installPackage } = (await import(
    pathToFileURL(join(repository, "scripts/install.mjs")).href
  )) as { installPackage(folder: string, say: (line: string) => void): void };
  installPackage("scripts/api", console.info);
  run("git", "clone", "--quiet", repository, ".");
  run("git", "switch", "--quiet", "--force-create", "main");
  for (const folder of ["node_modules", "scripts/api/node_modules"])
    run(
      "sh",
      "-c",
      'cp -al "$0" "$1" 2>/dev/null || cp -a "$0" "$1"',
      join(repository, folder),
      folder,
    );

  run("npm", "run", "address", "--", "https://github.com/acme/keelson");
  expect(JSON.parse(readFileSync(join(copy, "package.json"), "utf8"))).toMatchObject({
    repository: { type: "git", url: "git+https://github.com/acme/keelson.git" },
    homepage: "https://acme.github.io/keelson/",
  });
  const author = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com"];
  run("git", ...author, "commit", "--quiet", "--all", "--message", "build: the address");

  expect(run("npm", "run", "release", "--", "patch", "--dry-run")).toContain(
    "would go from 0.1.0 to 0.1.1",
  );
});
