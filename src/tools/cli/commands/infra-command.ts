import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, parse } from "node:path";
import { isRecord } from "../../../base/errors/option-table.ts";
import { mistakes } from "../../infra/check.ts";
import { type ComparedTemplate, differences } from "../../infra/difference.ts";
import { combined, extensionOf } from "../../infra/extension.ts";
import { dividedFronts, type FrontName, frontNames, streamingFronts } from "../../infra/fronts.ts";
import type { Shape } from "../../infra/functions.ts";
import { fairSteps } from "../../infra/needs.ts";
import { type Flattened, flattened, nestedFiles } from "../../infra/nested/flattened.ts";
import { moves } from "../../infra/nested/moves.ts";
import type { Child, NestedTemplates } from "../../infra/nested/nested-templates.ts";
import { setReport, templateSet } from "../../infra/nested/template-set.ts";
import { type ServerPart, serverTemplate } from "../../infra/server-template.ts";
import { type Template, templateText } from "../../infra/template.ts";
import { bucketStatement } from "../../infra/web-front.ts";
import {
  type CommandContext,
  defineCommand,
  flag,
  messageOf,
  moduleArgument,
  moduleOf,
  oneLine,
  oneOfNames,
  options,
  refuse,
  text,
  textOr,
  texts,
  type ValuesOf,
} from "../setup/define-command.ts";
import { loadModule, loadServer } from "../setup/load-server.ts";

const flags = {
  stage: textOr("dev", "<name>", "names begin with <dynamodb.prefix>-<stage>"),
  part: textOr(
    "all",
    "data|functions|all",
    "what is in the template: what holds data, what works on it, or both",
  ),
  shape: textOr("one", "one|each", "one function for all routes, or one for each handler"),
  front: text(
    "http|web|rest|url",
    "what passes requests on: an HTTP API (default), a Web Function's endpoint, a REST API, or a function URL",
  ),
  stream: flag(
    "with --front rest or url: responses are streamed; the functions need { stream: true }",
  ),
  with: texts(
    "<file>",
    "your own template to add, as JSON: resources, and variables for functions;\nmay be repeated",
  ),
  fair: textOr("off", fairSteps.join("|"), "the step to fair queues: see docs/upgrade.md"),
  limited: text(
    "<number>",
    "adds an alarm for more refusals by rate limits a minute; the server needs `metrics`",
  ),
  out: textOr("infra/generated", "<folder>", "the folder for <part>-<stage>.json"),
  diff: text("<file>", "prints the changes since an earlier template, without writing a file"),
  check: text(
    "<file>",
    "lists the differences between a template and the server's needs, without writing a file",
  ),
  entry: text(
    "<file>",
    "with --check: the module that the template's functions are in, bundled or not",
  ),
} as const;

export const command = defineCommand({
  name: "infra",
  usage: `Usage: keelson infra <module> [options]

Writes the CloudFormation template of a server: tables, bus and queues, and the functions that use them, with
API, roles and alarms. The template depends only on the server, not on the environment.

${moduleArgument}

${options(flags)}

Exit codes: 0 done; 1 failed, or --diff found a change that loses data or cannot be deployed, or --check a mistake;
2 wrong usage.`,
  flags,
  run: async (values, [given], context) => {
    const { module, ...call } = callOf(values, given);
    const { check, diff } = call;
    if (check !== undefined) return checkTemplate(module, check, call, context);
    const before = diff === undefined ? undefined : await readTemplates("diff", diff);
    const extension = combined(await Promise.all(call.with.map(readExtension)));
    const server = await loadServer(module);
    const template = serverTemplate(server, { ...call, extension });
    const set = templateSet(template, server, `${call.part}-${call.stage}`);
    return before === undefined
      ? await write(template, set, call, context)
      : compare(before, set, context);
  },
});

async function write(
  template: Template,
  set: NestedTemplates,
  { part, stage, out, front }: Pick<Call, "part" | "stage" | "out" | "front">,
  { print, complain }: CommandContext,
) {
  const { problems, notes } = setReport(template, set);
  if (problems.length > 0)
    throw new Error(`the template cannot be deployed: ${problems.join("; ")}`);
  const file = join(out, `${part}-${stage}.json`);
  await mkdir(out, { recursive: true });
  const nested = [...set.children].map(
    ([name, { template: child }]) => [join(out, name), child] as const,
  );
  for (const [path, made] of [[file, set.parent] as const, ...nested]) {
    const text = templateText(made);
    await writeFile(path, text);
    print(
      `${path}: ${Object.keys(made.Resources).length} resources, ${Buffer.byteLength(text)} bytes`,
    );
  }
  for (const note of notes) complain(`keelson: ${file}: ${note}`);
  if (front === "web" && part !== "data") complain(`keelson: ${file}: ${bucketNote}`);
  return 0;
}

const bucketNote = `the bucket of CodeBucket must have versioning enabled, and its policy must also contain this statement:
${JSON.stringify(bucketStatement, undefined, 2)}`;

function compare(before: Flattened, set: NestedTemplates, { print, complain }: CommandContext) {
  const after = flattened(set.parent, [...set.children.values()]);
  const changes = [...moves(before, after), ...differences(before.template, after.template)];
  for (const { text, isDangerous } of changes)
    if (isDangerous) complain(`DANGER: ${oneLine(text)}`);
    else print(oneLine(text));
  if (changes.length === 0) print("nothing changes");
  return changes.some(({ isDangerous }) => isDangerous) ? 1 : 0;
}

async function checkTemplate(
  module: string,
  file: string,
  { entry, wanted: front, stream }: Pick<Call, "wanted" | "stream"> & { readonly entry?: string },
  { print, complain }: CommandContext,
) {
  const { template } = await readTemplates("check", file);
  const server = await loadServer(module);
  const own = entry === undefined ? undefined : await loadModule(entry);
  const functions = own && { ...fileOf(String(entry)), exports: own };
  const found = mistakes(server, template, functions, { front, stream });
  for (const mistake of found) complain(`keelson: ${file}: ${oneLine(mistake)}`);
  if (found.length > 0) return 1;
  print(`${file}: fits the server${entry === undefined ? "" : ` and ${entry}`}`);
  return 0;
}

function fileOf(entry: string) {
  const { dir, name, ext } = parse(entry);
  const isBundled = /^\.[cm]?js$/.test(ext);
  return { name, hasIndex: isBundled ? existsSync(join(dir, "index.js")) : undefined };
}

/** Reads a template and the nested ones next to it. Others, such as YAML, are left out. */
async function readTemplates(option: "diff" | "check", file: string): Promise<Flattened> {
  const parent = await readTemplate(option, file);
  const children = await Promise.all(
    nestedFiles(parent).map(async ([stack, name]): Promise<Child<ComparedTemplate>[]> => {
      const template = await readFile(join(dirname(file), name), "utf8")
        .then(JSON.parse)
        .catch(() => undefined);
      return isTemplate(template) ? [{ stack, template }] : [];
    }),
  );
  return flattened(parent, children.flat());
}

async function readTemplate(option: "diff" | "check", file: string): Promise<ComparedTemplate> {
  const read = await readJson(option, file);
  if (!isTemplate(read))
    refuse(
      `--${option} ${JSON.stringify(file)} is not a CloudFormation template; it has no Resources`,
    );
  return read;
}

async function readExtension(file: string) {
  const read = await readJson("with", file);
  try {
    return extensionOf(read);
  } catch (error) {
    refuse(`--with ${JSON.stringify(file)} is not taken: ${messageOf(error)}`);
  }
}

async function readJson(option: string, file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    refuse(`--${option} ${JSON.stringify(file)} cannot be read as JSON: ${messageOf(error)}`);
  }
}

/** Checks only the outer levels, because the comparison reads deeper levels as `unknown`. */
function isTemplate(read: unknown): read is ComparedTemplate {
  if (!isRecord(read)) return false;
  const { Resources, Parameters = {}, Conditions = {}, Outputs = {} } = read;
  return (
    [Parameters, Conditions, Outputs].every(isRecord) &&
    Object.values(Parameters as object).every(isRecord) &&
    isRecord(Resources) &&
    Object.values(Resources).every(
      (one) => isRecord(one) && (!("Properties" in one) || isRecord(one["Properties"])),
    )
  );
}

type Call = ReturnType<typeof callOf>;

function callOf(values: ValuesOf<typeof flags>, given: string | undefined) {
  const module = moduleOf(given, "infra");
  const { stage, diff, check, entry } = values;
  if (!/^[a-z][a-z0-9-]{0,19}$/.test(stage))
    refuse(
      `--stage ${JSON.stringify(stage)} is not a valid name; use up to 20 lower-case letters, digits and hyphens`,
    );
  if (diff !== undefined && check !== undefined)
    refuse("--diff and --check are given; use one of the two");
  if (entry !== undefined && check === undefined)
    refuse("--entry is given without --check; add --check <file>");
  const part = oneOf<ServerPart>("part", values.part, ["data", "functions", "all"]);
  const shape = oneOf<Shape>("shape", values.shape, ["one", "each"]);
  const fair = oneOf("fair", values.fair, fairSteps);
  const limited = values.limited === undefined ? undefined : refusalsOf(values.limited);
  const wanted = values.front === undefined ? undefined : oneOf("front", values.front, frontNames);
  const front = wanted ?? "http";
  // With --check, the front comes from the template.
  if (check === undefined || wanted !== undefined) refuseFront(front, shape, values.stream);
  return { ...values, module, part, shape, front, wanted, fair, limited };
}

function refusalsOf(given: string): number {
  if (/^\d{1,9}$/.test(given)) return Number(given);
  refuse(`--limited ${JSON.stringify(given)} is not a number of refusals a minute, such as 100`);
}

function refuseFront(front: FrontName, shape: Shape, isStreaming: boolean) {
  if (shape === "each" && !dividedFronts.includes(front))
    refuse(
      `--front ${front} has one function for all routes; leave out --shape each, or use --front ${dividedFronts.join(" or ")}`,
    );
  if (isStreaming && !streamingFronts.includes(front))
    refuse(
      `--stream is given with --front ${front}${unstreamed[front]}; use --front ${streamingFronts.join(" or ")}`,
    );
}

/** Why a front does not take `--stream`. */
const unstreamed: Readonly<Record<FrontName, string>> = {
  http: ", which cannot stream",
  web: ", which always streams",
  rest: "",
  url: "",
};

function oneOf<Name extends string>(option: string, given: string, names: readonly Name[]): Name {
  const found = names.find((name) => name === given);
  if (found !== undefined) return found;
  refuse(`--${option} ${JSON.stringify(given)} is unknown; use ${oneOfNames(names)}`);
}
