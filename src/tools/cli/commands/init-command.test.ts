import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { packageNameFor } from "../init/destination.ts";
import { manifestOf, packageFolder } from "../init/template.ts";

let root: string;
let folder: string;
let count = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "keelson-init-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));
beforeEach(() => {
  folder = join(root, `app-${++count}`);
});

/** Runs `keelson init`; with answers somebody sits at the terminal. */
async function init(
  args: readonly string[],
  { answers, env = {} }: { answers?: string[]; env?: Record<string, string> } = {},
) {
  const asked: string[] = [];
  const ask = async (question: string) => {
    asked.push(question);
    return answers?.shift() ?? "";
  };
  const { out, ...ended } = await ranCommand(["init", ...args], {
    env,
    clock: { now: () => 0 },
    ...(answers === undefined ? {} : { ask }),
  });
  return { ...ended, out: out.join("\n"), asked };
}

/** A PATH on which `npm` notes what it is asked for, and ends with `code`. */
async function npmThatEnds(code: number): Promise<Record<string, string>> {
  const bin = join(root, `npm-${code}`);
  await mkdir(bin, { recursive: true });
  await writeFile(
    join(bin, "npm"),
    `#!/usr/bin/env node\nrequire("fs").writeFileSync("npm.txt", process.argv.slice(2).join(" "));process.exit(${code})\n`,
  );
  await writeFile(join(bin, "package.json"), "{}");
  await chmod(join(bin, "npm"), 0o755);
  return { PATH: [bin, dirname(process.execPath), process.env["PATH"]].join(delimiter) };
}

const files = async (of: string) =>
  (await readdir(of, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(of.length + 1)
        .replaceAll("\\", "/"),
    )
    .sort();

describe("a project", () => {
  test("has all files, including dotfiles, and the given name", async () => {
    const { code, out, err } = await init([folder, "--name", "my-notes", "--no-install"]);

    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(`keelson: my-notes is in ${folder}\nNext:\n  cd `);
    expect(out).toMatch(/\n {2}npm install\n {2}npm test\n {2}npm start$/);
    const spaced = await init([join(folder, "in", "my notes"), "--no-install"]);
    expect(spaced.out).toMatch(/\n {2}cd "\S+in\Wmy notes"\n/);
    await rm(join(folder, "in"), { recursive: true });
    expect(await files(folder)).toEqual([
      ".biome.json",
      ".dockerignore",
      ".editorconfig",
      ".env.example",
      ".github/workflows/ci.yml",
      ".github/workflows/deploy.yml",
      ".gitignore",
      ".nvmrc",
      ".vscode/settings.json",
      "Dockerfile",
      "README.md",
      "contract.json",
      "development.env",
      "package.json",
      "pnpm-workspace.yaml",
      "scripts/bundle.mjs",
      "scripts/deploy.mjs",
      "src/docs.ts",
      "src/lambda.ts",
      "src/main.ts",
      "src/notes.ts",
      "src/reminders.ts",
      "src/server.ts",
      "test/notes.test.ts",
      "tsconfig.json",
      "vitest.config.ts",
    ]);
    expect(await readFile(join(folder, "README.md"), "utf8")).toMatch(/^# my-notes\n/);
  });

  test("depends on the versions that keelson itself is tested with", async () => {
    await init([folder, "--no-install"]);
    const own = JSON.parse(await readFile(join(packageFolder, "package.json"), "utf8"));
    const made = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));

    expect(made).toMatchObject({
      name: `app-${count}`,
      private: true,
      type: "module",
      dependencies: { keelson: `^${own.version}`, zod: own.devDependencies.zod },
      devDependencies: {
        typescript: own.devDependencies.typescript,
        vitest: own.devDependencies.vitest,
      },
    });
    expect(Object.values({ ...made.dependencies, ...made.devDependencies })).not.toContain(
      undefined,
    );
  });

  test("cannot depend on a package without a known version", () => {
    const template = { dependencies: ["zod", "nothing"], devDependencies: [] };
    expect(() =>
      manifestOf("a", template, { version: "1.0.0", devDependencies: { zod: "4.0.0" } }),
    ).toThrow("keelson's package.json has no version of nothing");
  });

  test("can be created in the current folder", async () => {
    await mkdir(folder);
    const cwd = vi.spyOn(process, "cwd").mockReturnValue(folder);
    const { code, out } = await init([".", "--no-install"]);
    cwd.mockRestore();

    expect(code).toBe(0);
    expect(out).toBe(
      `keelson: app-${count} is in ${folder}\nNext:\n  npm install\n  npm test\n  npm start`,
    );
  });

  test("can be created in an empty folder or a fresh clone", async () => {
    await mkdir(join(folder, ".git"), { recursive: true });
    expect((await init([folder, "--no-install"])).code).toBe(0);
  });
});

describe("a folder that cannot be used", () => {
  test("is refused with a list of its files, and nothing is written", async () => {
    await mkdir(folder);
    for (const name of ["c", "b", "a"]) await writeFile(join(folder, name), "");
    expect(await init([folder, "--yes"])).toMatchObject({
      code: 1,
      out: "",
      err: `keelson: ${folder} is not empty: it has a, b, c; name a new folder`,
    });
    for (const name of ["f", "e", "d"]) await writeFile(join(folder, name), "");
    expect((await init([folder])).err).toBe(
      `keelson: ${folder} is not empty: it has a, b, c, d, e and 1 more; name a new folder`,
    );
    expect(await readdir(folder)).toHaveLength(6);
  });

  test("is a file or cannot be read", async () => {
    await writeFile(folder, "");
    expect(await init([folder])).toMatchObject({
      code: 1,
      err: `keelson: ${folder} is a file; name a folder`,
    });
    const long = join(root, "x".repeat(300));
    expect(await init([long])).toMatchObject({
      code: 1,
      err: `keelson: ${long} cannot be read (ENAMETOOLONG)`,
    });
  });
});

describe("an option missing from the command line", () => {
  test("is asked for in a terminal, and the question shows the default", async () => {
    const { code, asked, out } = await init([], { answers: [folder, " my-app ", "n"] });

    expect({ code, asked }).toEqual({
      code: 0,
      asked: [
        "Folder (keelson-app): ",
        `Name of the package (app-${count}): `,
        "Run npm install? (yes): ",
      ],
    });
    expect(out).toContain("keelson: my-app is in");
  });

  test("takes its default for an empty answer, without a terminal, and with --yes", async () => {
    const env = await npmThatEnds(0);
    expect(await init([folder], { answers: [], env })).toMatchObject({
      code: 0,
      asked: [expect.any(String), expect.any(String)],
    });
    for (const how of [["--yes"], []]) {
      folder = join(root, `app-${++count}`);
      const { code, out, asked } = await init([folder, ...how], {
        env,
        ...(how.length === 0 ? {} : { answers: ["n", "n"] }),
      });
      expect({ code, asked }).toEqual({ code: 0, asked: [] });
      expect(out).not.toContain("npm install");
      expect(await readFile(join(folder, "npm.txt"), "utf8")).toBe(
        "install --include=dev --no-audit --no-fund",
      );
    }
  });

  test("is the only kind that is asked for", async () => {
    const { code, asked } = await init([folder, "--name=a", "--no-install"], { answers: ["x"] });
    expect({ code, asked }).toEqual({ code: 0, asked: [] });
  });
});

test("a failed installation is reported and leaves the project in place", async () => {
  for (const env of [await npmThatEnds(7), { PATH: join(root, "nowhere") }]) {
    folder = join(root, `app-${++count}`);
    const { code, out, err } = await init([folder], { env });
    expect({ code, err }).toEqual({
      code: 1,
      err: "keelson: npm install failed; the project was created, so run npm install again there",
    });
    expect(out).toMatch(/\n {2}npm install\n/);
    expect(await readdir(folder)).toContain("package.json");
  }
});

test.each([
  [["a", "b"], 'unexpected argument "b"'],
  [[""], "the folder's name is empty"],
  [["--nothing"], "there is no option --nothing"],
  [["a", "--name", "Not A Name"], '"Not A Name" is not a valid package name'],
  [["a", "--name", "x".repeat(215)], "is not a valid package name"],
])("a wrong command line is refused: %j", async (args, message) => {
  const { code, err } = await init(args.map((arg) => (arg === "a" ? folder : arg)));

  expect(code).toBe(2);
  expect(err).toContain(message);
  expect(err).toContain("Run `keelson init --help`.");
});

test("an answer other than yes or no is refused, and nothing is written", async () => {
  const { code, err } = await init([folder], { answers: ["a", "perhaps"] });

  expect([code, err.split("\n")[0]]).toEqual([2, 'keelson: "perhaps" is neither yes nor no']);
  await expect(readdir(folder)).rejects.toThrow("ENOENT");
});

test("--help prints the usage", async () => {
  expect(await init(["--help"])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Usage: keelson init/),
  });
});

test.each([
  ["/tmp/My App", "my-app"],
  ["/tmp/_private", "private"],
  ["/tmp/Ünder-", "nder"],
  ["/tmp/...", "keelson-app"],
  ["/", "keelson-app"],
])("a package in %s is named %s by default", (path, name) => {
  expect(packageNameFor(path)).toBe(name);
});
