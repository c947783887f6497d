import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type ComparedTemplate, differences } from "../infra/difference.ts";
import { sizeReport } from "../infra/limits.ts";
import { dataTemplate } from "../infra/server-template.ts";
import { type Template, templateText } from "../infra/template.ts";
import type { CommandContext } from "./command-context.ts";
import { loadServer } from "./load-server.ts";
import { oneLine } from "./one-line.ts";
import { runCommand, UsageError } from "./run-command.ts";

/** What `keelson infra --help` prints. */
export const infraUsage = `Usage: keelson infra <module> [options]

Writes the CloudFormation template of what a server needs: tables, bus and queues. The same server gives the
same template, whatever the environment.

  <module>                    exports the result of buildServer as \`server\`; it must not start anything

Options:
  --stage <name>              names begin with <dynamodb.prefix>-<stage> (default: dev)
  --part data                 what is in the template (default: data; there is no other part yet)
  --out <folder>              where <part>-<stage>.json is written (default: infra/generated)
  --diff <file>               writes nothing; prints what changes against a template of before
  --help                      print this text

Exit codes: 0 done, 1 failed, or --diff found a change that loses data or cannot be deployed, 2 wrong usage.`;

interface InfraCall {
  readonly module: string;
  readonly stage: string;
  readonly part: "data";
  readonly out: string;
  readonly diff: string | undefined;
}

/** Runs `keelson infra` and returns its exit code: 0, 1 where it failed or a change is dangerous, 2 where it was used wrongly. */
export function runInfraCommand(args: readonly string[], context: CommandContext): Promise<number> {
  const run = async (values: ReturnType<typeof parse>["values"], module: string | undefined) => {
    const call = callOf(values, module);
    const before = call.diff === undefined ? undefined : await readTemplate(call.diff);
    const template = dataTemplate(await loadServer(call.module), call);
    return before === undefined ? await write(template, call, context) : compare(before, template, context);
  };
  return runCommand({ usage: infraUsage, parse, run }, args, context);
}

async function write(template: Template, { part, stage, out }: InfraCall, { print, complain }: CommandContext): Promise<number> {
  const text = templateText(template);
  const { problems, notes } = sizeReport(template, text);
  if (problems.length > 0) throw new Error(`the template cannot be deployed: ${problems.join("; ")}`);
  const file = join(out, `${part}-${stage}.json`);
  await mkdir(out, { recursive: true });
  await writeFile(file, text);
  for (const note of notes) complain(`keelson: ${file}: ${note}`);
  print(`${file}: ${Object.keys(template.Resources).length} resources, ${Buffer.byteLength(text)} bytes`);
  return 0;
}

function compare(before: ComparedTemplate, after: Template, { print, complain }: CommandContext): number {
  const changes = differences(before, after);
  for (const { text, isDangerous } of changes) {
    if (isDangerous) complain(`DANGER: ${oneLine(text)}`);
    else print(oneLine(text));
  }
  if (changes.length === 0) print("nothing changes");
  return changes.some(({ isDangerous }) => isDangerous) ? 1 : 0;
}

/** @throws UsageError where the file is no template. */
async function readTemplate(file: string): Promise<ComparedTemplate> {
  let read: unknown;
  try {
    read = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new UsageError(`--diff ${JSON.stringify(file)} cannot be read as JSON: ${(error as Error).message}`); // safe: both throw errors only
  }
  if (!isTemplate(read))
    throw new UsageError(`--diff ${JSON.stringify(file)} is no template of CloudFormation; it has no Resources`);
  return read;
}

/** Whether it has the shape of a template; what is deeper is compared as unknown. */
function isTemplate(read: unknown): read is ComparedTemplate {
  if (!isObject(read)) return false;
  const { Resources, Parameters = {}, Conditions = {}, Outputs = {} } = read;
  return (
    [Resources, Parameters, Conditions, Outputs].every(isObject) &&
    [...membersOf(Resources), ...membersOf(Parameters)].every(isObject) &&
    membersOf(Resources).every(({ Properties = {} }) => isObject(Properties))
  );
}

/** The members of what has just been seen to be an object, each of which is looked at. */
function membersOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Object.values(value as Readonly<Record<string, Readonly<Record<string, unknown>>>>);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function callOf({ stage, part, out, diff }: ReturnType<typeof parse>["values"], module: string | undefined): InfraCall {
  if (module === undefined) throw new UsageError("no module is given; use keelson infra <module>");
  if (!/^[a-z][a-z0-9-]{0,19}$/.test(stage)) {
    throw new UsageError(`--stage ${JSON.stringify(stage)} is no name; use up to 20 lower-case letters, digits and hyphens`);
  }
  if (part !== "data") throw new UsageError(`--part ${JSON.stringify(part)} is not there; use data`);
  return { module, stage, part, out, diff };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      stage: { type: "string", default: "dev" },
      part: { type: "string", default: "data" },
      out: { type: "string", default: "infra/generated" },
      diff: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
}
