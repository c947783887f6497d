import { relative, resolve } from "node:path";
import { isPackageName, obstacleIn, packageNameFor } from "../init/destination.ts";
import { npmInstall } from "../init/install.ts";
import { writeProject } from "../init/template.ts";
import type { CommandContext } from "../setup/command-context.ts";
import {
  defineCommand,
  flag,
  helpOption,
  text,
  UsageError,
  type ValuesOf,
} from "../setup/define-command.ts";

export const initUsage = `Usage: keelson init [folder] [options]

Makes a project in a new or empty folder: a feature with its test, the entries of a Lambda function and a container,
a script that bundles, a Dockerfile, and a workflow for GitHub.

  [folder]                    where (default: keelson-app)

Options:
  --name <name>               the package's name (default: the folder's)
  --no-install                does not run npm install
  --yes                       takes the defaults, and asks nothing
${helpOption}

In a terminal it asks for what the command line does not say. It uses the network for npm install alone.
Exit codes: 0 the project is there, 1 it could not be made or installed, 2 wrong usage.`;

const flags = { name: text, install: { type: "boolean" }, yes: flag } as const;

export const run = defineCommand({ usage: initUsage, flags, allowNegative: true, run: init });

async function init(
  values: ValuesOf<typeof flags>,
  [argument]: readonly string[],
  { ask, env, print, complain }: CommandContext,
): Promise<number> {
  if (argument === "") throw new UsageError("the folder's name is empty");
  const answer = async (question: string, byDefault: string) =>
    (ask === undefined || values.yes ? "" : (await ask(`${question} (${byDefault}): `)).trim()) ||
    byDefault;
  const given = argument ?? (await answer("Folder", "keelson-app"));
  const folder = resolve(given);
  const obstacle = await obstacleIn(folder);
  if (obstacle !== undefined) throw new Error(obstacle);
  const name = values.name ?? (await answer("Name of the package", packageNameFor(folder)));
  if (!isPackageName(name))
    throw new UsageError(`${JSON.stringify(name)} is no name of a package: use a-z, 0-9, - and .`);
  const install = values.install ?? isYes(await answer("Run npm install?", "yes"));

  await writeProject(folder, name);
  print(`keelson: ${name} is in ${folder}`);
  const hasInstalled = install && (await npmInstall(folder, env));
  if (install && !hasInstalled)
    complain("keelson: npm install failed; the project is there, so run it again in the folder");
  const path = relative(process.cwd(), folder) || ".";
  const next = [
    ...(path === "." ? [] : [`cd ${path}`]),
    ...(hasInstalled ? [] : ["npm install"]),
    "npm test",
    "npm start",
  ];
  print(`Next:\n${next.map((line) => `  ${line}`).join("\n")}`);
  return install && !hasInstalled ? 1 : 0;
}

function isYes(answer: string): boolean {
  if (/^y(?:es)?$/i.test(answer)) return true;
  if (/^no?$/i.test(answer)) return false;
  throw new UsageError(`${JSON.stringify(answer)} is neither yes nor no`);
}
