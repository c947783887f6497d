import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { consumerEnvironment, shell } from "./environment.ts";

declare module "vitest" {
  interface ProvidedContext {
    consumer: Consumer;
  }
}

/** Values that all projects share. */
export interface Consumer {
  /** The package, as `npm pack` has made it of this checkout. */
  readonly tarball: string;
  /** Folder of the projects. */
  readonly projects: string;
  /** Project in which npm has installed the package and nothing else. */
  readonly installed: string;
}

const root = join(import.meta.dirname, "../../..");

/** Builds, packs and installs the package once, for all tests. Removes it together with the projects. */
export async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "keelson-consumer-"));
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    const run = promisify(execFile);
    await run(process.execPath, [join(root, "scripts/build.mjs")], { cwd: root });
    const packed = join(folder, "packed");
    mkdirSync(packed);
    const { stdout } = await run(
      "npm",
      ["pack", "--json", "--ignore-scripts", "--pack-destination", packed],
      {
        cwd: root,
        shell,
        env: consumerEnvironment(),
        maxBuffer: 64 * 1_024 * 1_024,
      },
    );
    const answer: unknown = JSON.parse(stdout); // npm 12 names the package that it has packed, npm 11 lists it
    const [{ filename }] = Object.values(answer as Record<string, { filename: string }>) as [
      { filename: string },
    ]; // npm's own form
    const projects = join(folder, "projects");
    const tarball = join(packed, filename);
    const installed = join(projects, "installed");
    mkdirSync(installed, { recursive: true });
    const manifest = {
      name: "installed",
      private: true,
      dependencies: { keelson: `file:${tarball}` },
    };
    writeFileSync(join(installed, "package.json"), JSON.stringify(manifest));
    const install = ["install", "--no-audit", "--no-fund"];
    await run("npm", install, { cwd: installed, shell, env: consumerEnvironment() });
    project.provide("consumer", { tarball, projects, installed });
    return remove;
  } catch (error) {
    remove();
    throw error;
  }
}
