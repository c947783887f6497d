// `npm run release -- minor`: makes the commit and the tag of a release. A failure leaves the checkout unchanged.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readAddresses } from "./address.mjs";

const usage = `npm run release -- <patch | minor | major | x.y.z> [--dry-run]

On a clean checkout of main where npm run check passes:
  1. sets the version in package.json and package-lock.json
  2. adds the version and today's date to CHANGELOG.md, below [Unreleased]
  3. packs the package and keeps it in test/compatibility/kept/<version>, unless it is kept already
  4. commits, and tags v<version>
It does not push: its last line is the command that does. The tag then starts .github/workflows/release.yml, which publishes.

  --dry-run  check everything, and print the steps without taking them
  --help     print this`;

const root = join(import.meta.dirname, "..");
const say = (line) => console.log(`release: ${line}`);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {}); // the running command ends, and its changes are undone

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { "dry-run": { type: "boolean" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) console.log(usage);
  else release(positionals, values["dry-run"] === true);
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}

function release(wanted, isDry) {
  const { version: current } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const version = nextVersion(current, wanted);
  const tag = `v${version}`;
  const head = refuseUnready(tag);
  const changelog = released(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version);
  say("npm run check");
  run("npm", ["run", "--silent", "check"], "npm run check fails; fix that first");
  refuseDirty("npm run check has changed");
  const kept = join("test", "compatibility", "kept", version);
  if (isDry) {
    const keeps = existsSync(join(root, kept)) ? `leave ${kept} unchanged` : `record ${kept}`;
    return say(
      `would go from ${current} to ${version}, date the changelog, ${keeps}, commit, and tag ${tag}; nothing has changed`,
    );
  }
  try {
    run(
      "npm",
      ["version", version, "--no-git-tag-version", "--allow-same-version", "--ignore-scripts"],
      "npm version failed",
    );
    writeFileSync(join(root, "CHANGELOG.md"), changelog);
    if (existsSync(join(root, kept))) say(`${kept} exists, and stays unchanged`);
    else keep(kept);
    git("add", "--all");
    git("commit", "--quiet", "--allow-empty", "--message", `chore(release): ${version}`);
    git("tag", "--annotate", tag, "--message", `keelson ${version}`);
  } catch (error) {
    git("reset", "--quiet", "--hard", head);
    git("clean", "--quiet", "--force", "-d"); // the checkout was clean: untracked files are this script's
    throw new Error(`${error.message}\nrelease: the checkout is unchanged`);
  }
  say(
    `${tag} is committed and tagged; publish it with:\n\n  git push --atomic origin main ${tag}\n`,
  );
}

function nextVersion(current, wanted) {
  const [step, ...others] = wanted;
  if (step === undefined || others.length > 0) throw new Error(`expected one version\n\n${usage}`);
  const [major, minor, patch] = numbersOf(current);
  const steps = {
    major: [major + 1, 0, 0],
    minor: [major, minor + 1, 0],
    patch: [major, minor, patch + 1],
  };
  const next = steps[step] ?? numbersOf(step);
  const at = next.findIndex((number, index) => number !== [major, minor, patch][index]);
  // The current version can be released until it has a tag.
  if (at !== -1 && next[at] < [major, minor, patch][at])
    throw new Error(`${step} is older than ${current}, the version of package.json`);
  return next.join(".");
}

function numbersOf(version) {
  if (!/^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/.test(version)) {
    throw new Error(
      `${version} is not a version; use patch, minor, major, or three numbers such as 1.2.3`,
    );
  }
  return version.split(".").map(Number);
}

/** Returns the commit that the release starts from. */
function refuseUnready(tag) {
  if (readAddresses() === undefined)
    throw new Error(
      "package.json names no repository; run: npm run address -- https://github.com/<owner>/<name>",
    );
  const branch = git("branch", "--show-current");
  if (branch !== "main")
    throw new Error(
      `a release needs main, and this is ${branch || "no branch"}; run: git switch main`,
    );
  refuseDirty("there are uncommitted changes");
  if (git("tag", "--list", tag) !== "")
    throw new Error(`the tag ${tag} exists; choose a later version`);
  return git("rev-parse", "HEAD");
}

function refuseDirty(what) {
  const changes = git("status", "--porcelain");
  if (changes !== "") throw new Error(`${what}:\n${changes}\nCommit or discard them.`);
}

/** Returns the changelog with the version's heading below [Unreleased], which is then empty. */
function released(changelog, version) {
  const [heading, ...others] = changelog.match(/^## \[Unreleased\]$/gm) ?? [];
  if (heading === undefined || others.length > 0)
    throw new Error("CHANGELOG.md needs exactly one heading ## [Unreleased]");
  const [, text = ""] = changelog.split(heading);
  if (text.split(/^## /m)[0].trim() === "")
    throw new Error("CHANGELOG.md has no entry under [Unreleased]; describe the effect on users");
  return changelog.replace(
    heading,
    `${heading}\n\n## [${version}] - ${new Date().toISOString().slice(0, 10)}`,
  );
}

/** Records the data that the packed version stores and sends: later versions are tested with it. */
function keep(folder) {
  say(`recording ${folder}`);
  const work = mkdtempSync(join(root, ".dist-release-")); // inside the checkout, so that it uses the versions of package-lock.json
  try {
    const packed = run(
      "npm",
      ["pack", "--json", "--ignore-scripts", "--pack-destination", work],
      "npm pack failed",
    );
    run("tar", ["-xzf", JSON.parse(packed)[0].filename], "the package could not be unpacked", work);
    run(
      process.execPath,
      [join("test", "compatibility", "record.ts"), join(work, "package")],
      "recording the version failed",
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function git(...args) {
  return run("git", args, `git ${args[0]} failed`).trim();
}

function run(command, args, failure, cwd = root) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    shell: process.platform === "win32" && command === "npm",
  });
  if (status === 0) return stdout;
  throw new Error(
    `${failure}\n${[stdout, stderr, error?.message].filter(Boolean).join("\n").trim()}`,
  );
}
