import { relative, resolve } from "node:path";
import { isPackageName, npmInstall, obstacleIn, packageNameFor } from "../init/destination.ts";
import { writeProject } from "../init/template.ts";
import {
  type CommandContext,
  defineCommand,
  flag,
  listed,
  options,
  refuse,
  text,
  type ValuesOf,
} from "../setup/define-command.ts";

const name = text("<name>", "the package's name (default: the folder's)");
const install = flag("does not run npm install");
const yes = flag("accepts the defaults without asking");
const flags = { name, install: { type: "boolean" }, yes } as const;

export const command = defineCommand({
  name: "init",
  usage: `Usage: keelson init [folder] [options]

Makes a project in a new or empty folder: two features with their tests, the entries of Lambda functions and a container,
a linter, scripts that bundle and deploy, a Dockerfile, and workflows for GitHub.

${listed({ "[folder]": "where (default: keelson-app)" })}

${options({ name, "no-install": install, yes })}

In a terminal, it asks for options that the command line lacks. It uses the network only for npm install.
Exit codes: 0 the project was created, 1 it could not be created or installed, 2 wrong usage.`,
  flags,
  allowNegative: true,
  run: init,
});

async function init(
  values: ValuesOf<typeof flags>,
  [argument]: readonly string[],
  { ask, env, print, complain }: CommandContext,
) {
  if (argument === "") refuse("the folder's name is empty");
  const answer = async (question: string, byDefault: string) =>
    (ask === undefined || values.yes ? "" : (await ask(`${question} (${byDefault}): `)).trim()) ||
    byDefault;
  const given = argument ?? (await answer("Folder", "keelson-app"));
  const folder = resolve(given);
  const obstacle = await obstacleIn(folder);
  if (obstacle !== undefined) throw new Error(obstacle);
  const name = values.name ?? (await answer("Name of the package", packageNameFor(folder)));
  if (!isPackageName(name))
    refuse(`${JSON.stringify(name)} is not a valid package name: use a-z, 0-9, - and .`);
  const install = values.install ?? isYes(await answer("Run npm install?", "yes"));

  await writeProject(folder, name);
  print(`keelson: ${name} is in ${folder}`);
  const hasInstalled = install && (await npmInstall(folder, env));
  if (install && !hasInstalled)
    complain(
      "keelson: npm install failed; the project was created, so run npm install again there",
    );
  const path = relative(process.cwd(), folder) || ".";
  const word = /\s/.test(path) ? `"${path}"` : path;
  const next = [
    ...(path === "." ? [] : [`cd ${word}`]),
    ...(hasInstalled ? [] : ["npm install"]),
    "npm test",
    "npm start",
  ];
  print(`Next:\n${next.map((line) => `  ${line}`).join("\n")}`);
  return install && !hasInstalled ? 1 : 0;
}

function isYes(answer: string) {
  if (/^y(?:es)?$/i.test(answer)) return true;
  if (/^no?$/i.test(answer)) return false;
  refuse(`${JSON.stringify(answer)} is neither yes nor no`);
}
