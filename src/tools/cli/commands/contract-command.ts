import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { UnsaidSchema } from "../../../app/openapi/json-schema.ts";
import type { ServerInternals } from "../../../app/server/server.ts";
import { type Contract, contractOf, contractText, readContract } from "../../contract/contract.ts";
import { contractChanges } from "../../contract/contract-changes.ts";
import {
  actionOf,
  type CommandContext,
  defineCommand,
  flag,
  messageOf,
  moduleArgument,
  moduleOf,
  oneLine,
  options,
  refuse,
  textOr,
  type ValuesOf,
} from "../setup/define-command.ts";
import { onItsStack } from "../setup/its-server.ts";
import { loadServer } from "../setup/load-server.ts";
import { type Checked, reportJson, reportLines, reportMarkdown } from "./contract-report.ts";
import { writeText } from "./document-command.ts";

const flags = {
  file: textOr("contract.json", "<path>", "the lock"),
  json: flag("check: print one JSON document"),
  markdown: flag("check: print Markdown, for the comment of a pull request"),
  stored: flag(
    "check: read the configuration table of the environment, and list the rows whose\nvalue would be read differently; read-only",
  ),
};
type Values = ValuesOf<typeof flags>;

const actions = { write, check };

export const command = defineCommand({
  name: "contract",
  actions,
  usage: `Usage: keelson contract write|check <module> [options]

Locks a server's contract: routes, events, jobs and configuration keys. \`write\` writes the contract to a file for
version control; \`check\` lists the changes since then that break clients, consumers or stored settings.

${moduleArgument}

${options(flags)}

Exit codes: 0 written, or nothing breaks; 1 something breaks, or it failed; 2 wrong usage, or no lock.`,
  flags,
  maxArguments: 2,
  run: async (values, [given, module], context) => {
    const action = actionOf(actions, given);
    const { json, markdown, stored } = values;
    if (json && markdown) refuse("--json and --markdown are given; use one of the two");
    if (action === "write" && (json || markdown || stored))
      refuse("--json, --markdown and --stored are of check");
    const path = moduleOf(module, `contract ${action}`);
    return await actions[action](path, values, context);
  },
});

async function write(module: string, { file }: Values, { print, complain }: CommandContext) {
  const { contract, unsaid } = await declared(await loadServer(module), module);
  await writeText(file, contractText(contract));
  nameUnsaid(unsaid, complain);
  const told = (["routes", "events", "jobs", "keys"] as const).map((what) => {
    const { length } = contract[what];
    return `${length} ${length === 1 ? what.slice(0, -1) : what}`;
  });
  print(`${file}: ${told.join(", ")}`);
  return 0;
}

async function check(
  module: string,
  { file, json, markdown, stored }: Values,
  context: CommandContext,
) {
  const before = await readLock(file, module);
  const server = await loadServer(module);
  const { contract, unsaid } = await declared(server, module);
  const checked: Checked = {
    changes: changesSince(before, contract, file),
    isStale: contractText(before) !== contractText(contract),
    unsaid,
    stored: stored ? await readStored(server, before, context, module) : undefined,
  };
  nameUnsaid(unsaid, context.complain);
  const anew = `keelson contract write ${module} --file ${file}`;
  const report = json ? reportJson : markdown ? reportMarkdown : reportLines;
  for (const line of report(checked, anew)) context.print(line);
  return checked.changes.some(({ breaks }) => breaks !== undefined) ? 1 : 0;
}

/** @throws UsageError if the lock has the wrong shape, for example after a manual edit. */
function changesSince(before: Contract, contract: Contract, file: string) {
  try {
    return contractChanges(before, contract);
  } catch (error) {
    const why = `keelson did not write a part of it (${messageOf(error)}); write the file again`;
    refuse(`the lock ${JSON.stringify(file)} is not taken: ${why}`);
  }
}

function declared(server: ServerInternals, module: string) {
  return contractOf(server, dirname(resolve(module)));
}

function nameUnsaid(unsaid: readonly UnsaidSchema[], complain: CommandContext["complain"]) {
  for (const { where, why } of unsaid)
    complain(`keelson: not in the lock: ${oneLine(where)}: ${oneLine(why)}`);
}

async function readLock(file: string, module: string) {
  const name = JSON.stringify(file);
  const text = await readFile(file, "utf8").catch(({ code, message }: NodeJS.ErrnoException) => {
    refuse(
      code === "ENOENT"
        ? `there is no lock ${name}; keelson contract write ${module} --file ${file} makes it, from the version to compare with`
        : `the lock ${name} cannot be read: ${message}`,
    );
  });
  try {
    return readContract(text);
  } catch (error) {
    refuse(`the lock ${name} is not taken: ${messageOf(error)}`);
  }
}

async function readStored(
  server: ServerInternals,
  { keys }: Contract,
  context: CommandContext,
  module: string,
) {
  // Loaded lazily: a check without `--stored` does not need AWS code.
  const { storedRows } = await import("./stored-rows.ts");
  try {
    return await onItsStack(context, server, ({ env, clock, progress }) =>
      storedRows({ server, locked: keys, env, clock, progress }),
    );
  } catch (error) {
    throw new Error(
      `the stored settings cannot be read: ${messageOf(error)}; keelson doctor ${module} shows problems of the region, the credentials or the table`,
      { cause: error },
    );
  }
}
