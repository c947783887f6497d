import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { copiesOf } from "./support/installed.ts";
import { createProject } from "./support/project.ts";
import { newestOfAll } from "./support/registry.ts";

type Versions = Readonly<Record<string, string>>;

const manifest: {
  readonly dependencies: Versions;
  readonly peerDependencies: Versions;
  readonly devDependencies: Versions;
} = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
const files = {
  "features.mjs": readFileSync(join(import.meta.dirname, "projects/features.mjs"), "utf8"),
};
const ranges = { ...manifest.dependencies, ...manifest.peerDependencies };
/** What the application imports itself, beside what keelson does. */
const own = { zod: manifest.devDependencies["zod"] ?? "" };

/** The version that a range begins with. */
const lowest = (range: string) => /\d+\.\d+\.\d+/.exec(range)?.[0] ?? "";
const isPowertools = (name: string) => name.startsWith("@aws-lambda-powertools/");

const done = {
  write: [201, { id: "1", most: 5 }],
  replay: [201, { id: "1", most: 5 }, "true"],
  listed: [200, { ids: ["1", "copy of 1"] }],
  lambda: 200,
  queue: { batchItemFailures: [] },
  adopted: [
    1,
    ["/adopted"],
    [201, '{"handler":"function"}', "1"],
    [201, '{"handler":"function"}', null],
  ],
  claims: [{ cents: 7 }, { cents: 7 }, 1],
  powertools: true,
};

test("every dependency has a range from the lowest tested version to the next major one", () => {
  expect(
    Object.entries(ranges).filter(
      ([, range]) => !/^(\^|>=)\d+\.\d+\.\d+( \|\| \^\d+\.\d+\.\d+)*$/.test(range),
    ),
  ).toEqual([]);
});

test("an application runs with the lowest version of all of keelson's dependencies", {
  timeout: 900_000,
}, async () => {
  const names = Object.keys(ranges);
  const versions = Object.fromEntries(names.map((name) => [name, lowest(ranges[name] ?? "")]));
  // npm takes the newest of what nobody but keelson asks for.
  const overrides = {
    keelson: Object.fromEntries(
      Object.keys(manifest.dependencies).map((name) => [name, versions[name]]),
    ),
  };
  const peers = Object.fromEntries(
    Object.keys(manifest.peerDependencies).map((name) => [name, versions[name] ?? ""]),
  );
  const project = await createProject({
    name: "lowest",
    dependencies: { ...own, ...peers },
    files,
    packageJson: { overrides },
    isFresh: true,
  });
  const installed = Object.fromEntries(
    names.map((name) => [name, copiesOf(project.directory, name)]),
  );
  const { code, stdout, stderr } = await project.run("node", ["features.mjs"]);

  expect(stderr.replace(/\(node:.*\n?|.*NodeVersionSupportWarning[\s\S]*/g, "")).toBe("");
  expect({ code, ...JSON.parse(stdout) }).toEqual({ code: 0, ...done });
  expect(installed).toMatchObject(
    Object.fromEntries(names.map((name) => [name, [versions[name]]])),
  );
});

test("an application runs with the newest version of all of keelson's dependencies", {
  timeout: 900_000,
}, async () => {
  const peers = Object.entries(manifest.peerDependencies).filter(([name]) => !isPowertools(name));
  // Its packages ask for one another in the very same version: the newest in which there are all of them.
  const powertools = Object.keys(ranges).filter(isPowertools);
  const version = await newestOfAll([...powertools, "@aws-lambda-powertools/jmespath"]);
  const project = await createProject({
    name: "newest",
    dependencies: {
      ...own,
      ...Object.fromEntries([...peers, ...powertools.map((name) => [name, version])]),
    },
    files,
    isFresh: true,
  });
  const { code, stdout } = await project.run("node", ["features.mjs"]);

  expect({ code, ...JSON.parse(stdout) }).toEqual({ code: 0, ...done });
});
