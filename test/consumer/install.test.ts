import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createProject, type Project } from "./support/project.ts";

const { exports } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
const entryPoints = Object.keys(exports)
  .filter((path) => !path.endsWith(".json"))
  .map((path) => path.replace(/^\./, "keelson"));

let project: Project;
beforeAll(async () => {
  project = await createProject({ name: "install", dependencies: { dynalite: "4.0.0" }, files: {} });
});

test.each(entryPoints)("%s can be imported by a project that has installed the package", async (entryPoint) => {
  const { code, stdout, stderr } = await project.run("node", [
    "--input-type=module",
    "--eval",
    `console.log(Object.keys(await import(${JSON.stringify(entryPoint)})).length)`,
  ]);

  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(Number(stdout)).toBeGreaterThan(0);
});
