import { relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { CommandContext } from "./command-context.ts";
import { isPackageName, obstacleIn, packageNameFor } from "./init/destination.ts";
import { npmInstall } from "./init/install.ts";
import { writeProject } from "./init/template.ts";

/** What `keelson init --help` prints. */
export const initUsage = `Usage: keelson init [folder] [options]

Makes a project in a new or empty folder: a feature with its test, the entries of a Lambda function and a container,
a script that bundles, a Dockerfile, and a workflow for GitHub.

  [folder]                    where (default: keelson-app)

Options:
  --name <name>               the package's name (default: the folder's)
  --no-install                does not run npm install
  --yes                       takes the defaults, and asks nothing
  --help                      print this text

In a terminal it asks for what the command line does not say. It uses the network for npm install alone.
Exit codes: 0 the project is there, 1 it could not be made or installed, 2 wrong usage.`;

/** The command was used wrongly. */
class UsageError extends Error {}

/** What the command line says; what it does not is asked for. */
interface InitCall {
  readonly folder: string | undefined;
  readonly name: string | undefined;
  readonly install: boolean | undefined;
  readonly isSilent: boolean;
}

/** Runs `keelson init` and returns its exit code: 0, 1 where the project could not be made, 2 where it was used wrongly. */
export async function runInitCommand(args: readonly string[], context: CommandContext): Promise<number> {
  try {
    const call = parseCall(args);
    if (call === undefined) {
      context.print(initUsage);
      return 0;
    }
    return await init(call, context);
  } catch (error) {
    const { message } = error as Error; // safe: parsing and the file system throw errors only
    const isUsage = error instanceof UsageError;
    context.complain(isUsage ? `keelson: ${message}\n\n${initUsage}` : `keelson: ${message}`);
    return isUsage ? 2 : 1;
  }
}

async function init(call: InitCall, { ask, env, print, complain }: CommandContext): Promise<number> {
  const answer = async (question: string, byDefault: string) =>
    (ask === undefined || call.isSilent ? "" : (await ask(`${question} (${byDefault}): `)).trim()) || byDefault;
  const given = call.folder ?? (await answer("Folder", "keelson-app"));
  const folder = resolve(given);
  const obstacle = await obstacleIn(folder);
  if (obstacle !== undefined) throw new Error(obstacle);
  const name = call.name ?? (await answer("Name of the package", packageNameFor(folder)));
  if (!isPackageName(name)) throw new UsageError(`${JSON.stringify(name)} is no name of a package: use a-z, 0-9, - and .`);
  const install = call.install ?? isYes(await answer("Run npm install?", "yes"));

  await writeProject(folder, name);
  print(`keelson: ${name} is in ${folder}`);
  const hasInstalled = install && (await npmInstall(folder, env));
  if (install && !hasInstalled) complain("keelson: npm install failed; the project is there, so run it again in the folder");
  const path = relative(process.cwd(), folder) || ".";
  const next = [...(path === "." ? [] : [`cd ${path}`]), ...(hasInstalled ? [] : ["npm install"]), "npm test", "npm start"];
  print(`Next:\n${next.map((line) => `  ${line}`).join("\n")}`);
  return install && !hasInstalled ? 1 : 0;
}

function isYes(answer: string): boolean {
  if (/^y(?:es)?$/i.test(answer)) return true;
  if (/^no?$/i.test(answer)) return false;
  throw new UsageError(`${JSON.stringify(answer)} is neither yes nor no`);
}

function parseCall(args: readonly string[]): InitCall | undefined {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    throw new UsageError((error as Error).message); // safe: parseArgs throws errors only
  }
  const { values, positionals } = parsed;
  if (values.help) return undefined;
  const [folder, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(more[0])}`);
  if (folder === "") throw new UsageError("the folder's name is empty");
  return { folder, name: values.name, install: values.install, isSilent: values.yes };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: {
      name: { type: "string" },
      install: { type: "boolean" },
      yes: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
}
