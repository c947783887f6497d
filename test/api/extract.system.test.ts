import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
/** A package of two entry points, with the scripts and the tools of this one. */
let root: string;

beforeAll(async () => {
  // Safe: scripts are plain JavaScript, and this is what the module exports.
  const { installPackage } = (await import(
    pathToFileURL(join(repository, "scripts/install.mjs")).href
  )) as {
    installPackage(folder: string, say: (line: string) => void): void;
  };
  installPackage("scripts/api", () => {});
});

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "keelson-api-"))); // a link on macOS
  const tools = "scripts/api/node_modules";
  cpSync(join(repository, "scripts"), join(root, "scripts"), {
    recursive: true,
    preserveTimestamps: true, // or the tools would count as out of date
    filter: (path) => !path.startsWith(join(repository, tools)),
  });
  for (const path of ["node_modules", tools])
    symlinkSync(join(repository, path), join(root, path), "junction");
  file(
    "package.json",
    JSON.stringify({
      name: "keelson",
      type: "module",
      exports: { ".": entry("index"), "./door": entry("door") },
    }),
  );
  file("dist/index.d.ts", 'export { type Room, makeRoom } from "./inner/room.ts";\n');
  file(
    "dist/door.d.ts",
    'import type { Room } from "./inner/room.ts";\n/** Opens a room. */\nexport declare function open(room: Room): void;\n',
  );
  file("dist/inner/room.d.ts", room("string"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

// One package for all tests, in this order: a run takes seconds.

test("npm run api writes a report of each entry point, and deletes the reports of removed ones", async () => {
  file("test/api/gone.api.md", "# keelson/gone\n");

  expect(await api()).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("wrote 3 reports"),
  });
  expect(readdirSync(join(root, "test/api"))).toEqual([
    "door.api.md",
    "keelson.api.md",
    "unexported.api.md",
  ]);
});

test("it writes a page of all names, each with the first paragraph of its comment", () => {
  const page = readFileSync(join(root, "docs/api.md"), "utf8");

  expect(page.split("\n").filter((line) => /^## |^\| `/.test(line))).toEqual([
    "## keelson",
    "| `makeRoom` | Makes a room, with a door. |",
    "| `Room` | A room. Or a hall. |",
    "## keelson/door",
    "| `open` | Opens a room. |",
  ]);
});

test("moved files and changed comments of members change nothing", async () => {
  file("dist/other/place.d.ts", room("string").replace("On the door.", "Says it otherwise."));
  rmSync(join(root, "dist/inner"), { recursive: true });
  for (const name of ["dist/index.d.ts", "dist/door.d.ts"]) {
    file(
      name,
      readFileSync(join(root, name), "utf8").replace("./inner/room.ts", "./other/place.ts"),
    );
  }

  expect(await api("--check")).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("a changed public type fails with the difference and the command that accepts it", async () => {
  file("dist/other/place.d.ts", room("number"));
  const exports = { ".": entry("index"), "./door": entry("door"), "./gate": entry("door") };
  file("package.json", JSON.stringify({ name: "keelson", type: "module", exports }));

  const { code, stderr } = await api("--check");
  expect(code).toBe(1);
  expect(stderr).toContain("--- test/api/keelson.api.md");
  expect(stderr).toContain("-    readonly name: string;\n+    readonly name: number;\n");
  expect(stderr).toContain("+# keelson/gate");
  expect(stderr).toContain("npm run api");
  expect(stderr).not.toContain("door.api.md");
});

test("a type that the declarations use but do not declare is an error, as with skipLibCheck false", async () => {
  file("dist/other/place.d.ts", "export declare function makeRoom(): Room;\n");

  const { code, stderr } = await api();
  expect(code).toBe(1);
  expect(stderr).toContain("dist/other/place.d.ts(1,37): error TS2304: Cannot find name 'Room'.");
});

test("a changed comment of a name asks for a new page, and a name needs a comment", async () => {
  const place = "dist/other/place.d.ts";
  const exports = { ".": entry("index"), "./door": entry("door") };
  file("package.json", JSON.stringify({ name: "keelson", type: "module", exports }));
  file(place, room("string").replace("/** A room.", "/** A hall."));
  expect(await api("--check")).toMatchObject({
    code: 1,
    stderr: "api: docs/api.md does not match the sources; run npm run api\n",
  });
  file(place, room("string").replace(/^[^\n]*\n/, ""));
  expect(await api()).toMatchObject({
    code: 1,
    stderr: "api: names without a comment:\nkeelson: Room\n",
  });
});

test("an unknown option is refused with the usage", async () => {
  expect(await api("--accept")).toMatchObject({
    code: 1,
    stderr: "api: usage: npm run api [-- --check]\n",
  });
});

function room(type: string): string {
  return `/** A room. Or a {@link Room.name | hall}. */\nexport interface Room {\n    /** On the door. */\n    readonly name: ${type};\n}\n/**\n * Makes a room,\n * with a door.\n *\n * Never a window.\n * @example\n * makeRoom();\n */\nexport declare function makeRoom(): Room;\n`;
}

function entry(name: string): Readonly<Record<string, string>> {
  return { types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` };
}

function file(name: string, text: string): void {
  mkdirSync(dirname(join(root, name)), { recursive: true });
  writeFileSync(join(root, name), text);
}

function api(
  ...args: readonly string[]
): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(root, "scripts/api/main.mjs"), ...args],
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}
