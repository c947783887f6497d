import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "./dockerfile.ts";

interface Step {
  readonly id?: string;
  readonly if?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly "timeout-minutes"?: number;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly needs?: string | readonly string[];
  readonly if?: string;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> };
  readonly steps: readonly Step[];
}
interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly concurrency?: Readonly<Record<string, unknown>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const folder = ".github/workflows";
const names = globSync(`${folder}/*.yml`, { cwd: root })
  .map((path) => path.replaceAll("\\", "/"))
  .sort();
const text = (name: string) => readFileSync(join(root, name), "utf8");
const workflows = names.map((name) => ({ name, workflow: parse(text(name)) as Workflow })); // as the tests below look at it
const jobs = workflows.flatMap(({ name, workflow }) =>
  Object.entries(workflow.jobs).map(([id, job]) => ({ place: `${name}: ${id}`, job })),
);
const named = (file: string) =>
  workflows.find(({ name }) => name === `${folder}/${file}`)?.workflow;
const { scripts } = JSON.parse(text("package.json")) as {
  readonly scripts: Readonly<Record<string, string>>;
};

test("CI runs everything on Linux with the versions of .ci/run, and npm test on each other platform and Node", () => {
  const { everything, platforms } = named("ci.yml")?.jobs ?? {};
  const given = Object.assign(
    {},
    ...(everything?.steps ?? []).map((step) => step.with ?? {}),
  ) as Record<string, unknown>; // of steps

  expect(everything?.steps.at(-1)?.run).toBe(".ci/run");
  expect(given).toMatchObject({ "node-version": 22, "java-version": 17, "python-version": "3.11" });
  expect(text(".ci/run")).toContain("(3, 11)");
  expect(platforms?.strategy?.matrix).toEqual({
    os: ["macos-latest", "windows-latest"],
    node: [22, 24, "current"],
  });
  expect(platforms?.steps.at(-1)?.run).toBe("npm test");
});

test("a release is published from a tag, after check and tests, with provenance", () => {
  const release = named("release.yml");
  const runsOf = (id: string) => release?.jobs[id]?.steps.flatMap(({ run }) => run ?? []);

  expect(release?.on).toEqual({ push: { tags: ["v[0-9]+.[0-9]+.[0-9]+"] } });
  expect(release?.jobs["publish"]?.needs).toEqual(["test", "package"]);
  expect(runsOf("test")).toEqual(["npm ci --no-audit --no-fund", "npm run check", "npm test"]);
  expect(runsOf("package")).toEqual([
    "node scripts/publishable.mjs",
    "npm ci --ignore-scripts --no-audit --no-fund",
    "npm run build",
    "npm pack --ignore-scripts",
  ]);
  expect(runsOf("publish")).toEqual([
    "npm publish ./keelson-*.tgz --provenance --access public --ignore-scripts",
  ]);
});

test("the site is built and published once package.json has an address; until then, a notice says so", () => {
  const { build, publish } = named("docs.yml")?.jobs ?? {};
  const steps = build?.steps ?? [];
  const last = steps.findIndex(({ id }) => id === "address");

  expect(steps[last]?.run).toBe("node scripts/site-address.mjs");
  expect(new Set(steps.slice(last + 1).map((step) => step.if))).toEqual(
    new Set(["steps.address.outputs.publishes == 'true'"]),
  );
  expect(publish?.if).toBe("needs.build.outputs.publishes == 'true'");

  const copy = mkdtempSync(join(tmpdir(), "keelson-site-address-"));
  try {
    mkdirSync(join(copy, "scripts"));
    for (const name of ["address.mjs", "site-address.mjs"])
      copyFileSync(join(root, "scripts", name), join(copy, "scripts", name));
    const runWith = (manifest: object) => {
      writeFileSync(join(copy, "package.json"), JSON.stringify(manifest));
      writeFileSync(join(copy, "output"), "");
      const { stdout, stderr } = spawnSync(process.execPath, ["scripts/site-address.mjs"], {
        ...{ cwd: copy, encoding: "utf8" },
        env: { ...process.env, GITHUB_OUTPUT: join(copy, "output") },
      });
      return [stdout, stderr, readFileSync(join(copy, "output"), "utf8")];
    };

    expect(runWith({})).toEqual([
      expect.stringMatching(/^::notice title=The site is not published::.*npm run address/),
      "",
      "publishes=false\n",
    ]);
    const repository = { url: "git+https://github.com/owner/name.git" };
    expect(runWith({ repository })).toEqual(["", "", "publishes=true\n"]);
  } finally {
    rmSync(copy, { recursive: true });
  }
});

test("a job with write permissions installs nothing, runs no script, and checks out no code", () => {
  const mighty = jobs.filter(({ job }) => Object.values(job.permissions ?? {}).includes("write"));

  const actionsOf = (job: Job) => job.steps.flatMap(({ uses }) => uses?.split("@")[0] ?? []);
  expect(
    mighty.map(({ place, job: { permissions, ...job } }) => ({
      place,
      permissions,
      actions: actionsOf(job),
    })),
  ).toEqual([
    {
      place: `${folder}/docs.yml: publish`,
      permissions: { pages: "write", "id-token": "write" },
      actions: ["actions/deploy-pages"],
    },
    {
      place: `${folder}/release.yml: publish`,
      permissions: { "id-token": "write" },
      actions: ["actions/setup-node", "actions/download-artifact"],
    },
  ]);
  for (const { job } of mighty)
    for (const { run } of job.steps)
      expect(run ?? "").toMatch(/^$|^npm publish \.\/\S+\.tgz .*--ignore-scripts$/);
});

test("the starter's workflow gives the role only to a job that runs no code of a dependency", () => {
  const path = "examples/starter/_github/workflows/deploy.yml";
  const { permissions, jobs } = parse(text(path)) as Workflow; // as this test looks at it
  const { build, deploy } = jobs;

  expect([permissions, build?.permissions]).toEqual([{ contents: "read" }, undefined]);
  expect(deploy?.permissions).toEqual({ contents: "read", "id-token": "write" });
  expect(deploy?.needs).toBe("build");
  expect(deploy?.steps.flatMap(({ run }) => run ?? [])).toEqual([
    "node scripts/deploy.mjs --stage dev",
  ]);
  // Neither folder has a file that the job runs.
  const downloads = deploy?.steps.filter(({ uses }) => uses?.includes("download-artifact@"));
  expect(downloads?.map((step) => step.with)).toEqual([
    { name: "code", path: "dist" },
    { name: "template", path: "infra/generated" },
  ]);
});

test("every command of a workflow exists", () => {
  const commands = jobs.flatMap(({ place, job }) =>
    job.steps.flatMap(({ run }) => (run ?? "").split("\n").map((line) => ({ place, line }))),
  );
  const missing = commands.filter(({ line }) => line !== "" && !isThere(line.trim().split(/\s+/)));

  expect(missing).toEqual([]);
  expect(isThere(["npm", "run", "gone"])).toBe(false);
  expect(isThere(["node", "scripts/gone.mjs"])).toBe(false);
});

test("every action is pinned to a commit, with its version in a comment", () => {
  const uses = names.flatMap((name) =>
    text(name)
      .split("\n")
      .filter((line) => line.includes("uses:")),
  );

  expect(
    uses.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+/.test(line)),
  ).toEqual([]);
  // One version of an action everywhere.
  const pins = [...new Set(uses.map((line) => /uses: (\S+)/.exec(line)?.[1]))];
  expect(new Set(pins.map((pin) => pin?.split("@")[0])).size).toBe(pins.length);
});

test("no path is taken from a URL, so that a checkout may have spaces in its path or be on a Windows drive", () => {
  const files = globSync(["*.ts", "{src,test,scripts}/**/*.{ts,mjs}"], {
    cwd: root,
    exclude: ["**/node_modules/**", "**/kept/**"],
  });
  const taken = new RegExp(["import.meta.url", "pathname"].join(String.raw`\)\.`));

  expect(files.filter((file) => taken.test(text(file)))).toEqual([]);
  expect(files.length).toBeGreaterThan(500);
});

test("every job has a timeout and minimal permissions, and keeps no credentials", () => {
  for (const { name, workflow } of workflows) {
    // What a job needs beyond reading it says itself.
    expect([{}, { contents: "read" }]).toContainEqual(workflow.permissions);
    expect([name, workflow.concurrency]).toEqual([
      name,
      { group: expect.any(String), "cancel-in-progress": expect.any(Boolean) },
    ]);
  }
  for (const { place, job } of jobs) {
    expect([place, job["timeout-minutes"]]).toEqual([place, expect.any(Number)]);
    const checkouts = job.steps.filter(({ uses }) => uses?.startsWith("actions/checkout@"));
    for (const step of checkouts)
      expect([place, step.with?.["persist-credentials"]]).toEqual([place, false]);
  }
});

/** npm with a script of package.json or a command of its own, Node with a file, a file, or a tool of every runner. */
function isThere([program = "", first = "", second = ""]: readonly string[]): boolean {
  if (program === "npm")
    return first === "run"
      ? second in scripts
      : ["ci", "pack", "publish"].includes(first) || first in scripts;
  if (program === "node") return existsSync(join(root, first));
  return program === "rm" || existsSync(join(root, program));
}

test("the script that holds every change to all tests is valid for its shell", () => {
  const script = join(root, ".ci/run");
  const env = { ...process.env, LC_ALL: "C" }; // bash warns of a locale that the machine lacks
  const { status, stderr } = spawnSync("bash", ["-n", script], { encoding: "utf8", env });
  expect([status, stderr]).toEqual([0, ""]);
});
