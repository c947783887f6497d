import { onceTable } from "../../../app/handlers/table.ts";
import type { Adapters } from "../../../app/runtime/adapters.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { answerCipher } from "../../../parts/once/answer.ts";
import {
  doneStep,
  type ListedStep,
  stepPlace,
  stepStanding,
  undoneStep,
} from "../../../parts/once/step.ts";
import { storeResult } from "../../../parts/once/step-result.ts";
import {
  actionOf,
  type CommandContext,
  defineCommand,
  flag,
  itsEnvironment,
  listed,
  moduleArgument,
  moduleOf,
  oneLine,
  optionLines,
  options,
  refuse,
  refuseArgument,
  required,
  text,
  type ValuesOf,
} from "../setup/define-command.ts";
import { onItsServer } from "../setup/its-server.ts";
import { jsonFlag, printRows } from "../setup/print-rows.ts";
import { shownScan } from "../setup/shown-scan.ts";

const ofList = {
  unknown: flag("only steps that were started, are not running, and have no outcome"),
  ...jsonFlag,
};
const ofResolve = {
  result: text("<json>", "the step was done, with this result; later runs get it without a call"),
  retry: flag("the step was not done; the next run calls again"),
};
const flags = { ...ofList, ...ofResolve };
type Values = ValuesOf<typeof flags>;

const actions = { list: listing, resolve: resolving };

export const command = defineCommand({
  name: "steps",
  actions,
  usage: `Usage: keelson steps list <module> [--unknown] [--json]
       keelson steps resolve <module> <id> --result <json> | --retry

Lists the steps of writes, consumers, jobs and schedules (ctx.step), and resolves steps whose outcome is unknown. To find out the outcome, ask the called service about the step's ID, which it got as its key.

${moduleArgument}
${listed({ "<id>": "the ID of a step" })}

Options of list, which reads the whole table of claims:
${optionLines(ofList)}

Options of resolve:
${optionLines(ofResolve)}

${options({})}

${itsEnvironment} Messages in a dead-letter
queue are moved back afterwards; clients retry by themselves.`,
  flags,
  maxArguments: 4,
  run: async (values, [given, path, id, ...others], context) => {
    const action = actionOf(actions, given);
    const module = moduleOf(path, `steps ${action}`);
    refuseArgument(action === "list" ? id : others[0]);
    const work = actions[action](values, id);
    await onItsServer(module, context, async (runtime, there) =>
      work(runtime, await runtime.adapters.open(), there),
    );
    return 0;
  },
});

type Work = (
  runtime: Pick<Runtime, "secrets" | "tableName">,
  adapters: Adapters,
  context: CommandContext,
) => Promise<void>;

function listing(values: Values): Work {
  const { unknown, result, retry } = values;
  if (result !== undefined || retry) refuse("--result and --retry are options of resolve");
  return async ({ tableName }, adapters, context) => {
    const store = await adapters.steps.open();
    const steps = shownScan(context, tableName(onceTable.name), store.list);
    const rows = listedSteps(adapters, steps, context, unknown);
    await printRows(rows, values, context, `no step${unknown ? " has an unknown outcome" : ""}`);
  };
}

async function* listedSteps(
  adapters: Adapters,
  steps: AsyncIterable<ListedStep>,
  { clock }: CommandContext,
  isUnknownOnly: boolean,
) {
  for await (const step of steps) {
    // Skips expired items, which DynamoDB deletes late.
    if (step.record.expiresAt * 1000 <= clock.now()) continue;
    const status = await standingOf(adapters, step, clock.now());
    if (isUnknownOnly && status !== "unknown") continue;
    const { key: id, name, handler, tenantId, requestId, startedAt } = step;
    yield { id, step: name, handler, tenantId, requestId, startedAt, status };
  }
}

async function standingOf({ claims }: Adapters, { record, claim }: ListedStep, nowMs: number) {
  const isStarted = record.status === "STARTED";
  return stepStanding(record, isStarted ? await claims.read(claim) : undefined, nowMs);
}

/** Owner of steps that an operator resolves. No run has this name. */
const owner = "operator";

function resolving({ result, retry, unknown, json }: Values, given: string | undefined): Work {
  if (unknown || json) refuse("--unknown and --json are options of list");
  const id = required(given, "no step is given; use keelson steps resolve <module> <id>");
  if ((result === undefined) !== retry) refuse("say either --result <json> or --retry");
  const text = result === undefined ? undefined : checkedJson(result);
  return async ({ secrets, tableName }, adapters, { clock, print }) => {
    const steps = await adapters.steps.open();
    const step = await steps.find(id);
    if (step === undefined) throw new Error(`there is no step ${JSON.stringify(id)}`);
    const nowMs = clock.now();
    const standing = await standingOf(adapters, step, nowMs);
    if (standing !== "unknown")
      throw new Error(`the step ${id} is ${standing}; only one that is unknown is resolved`);
    const { keepMs, record } = step;
    const place = stepPlace(id, step.tenantId);
    const cipher = step.isSealed
      ? answerCipher(secrets, [tableName(onceTable.name), place.partition, place.sort])
      : undefined;
    const undone = undoneStep(owner, nowMs, keepMs);
    const stored = { text, place, owner, expiresAt: undone.expiresAt, cipher };
    const ended = retry
      ? undone
      : doneStep(owner, nowMs, keepMs, await storeResult(adapters.claims, stored));
    if (!(await steps.end(place, ended, record.owner)))
      throw new Error(`the step ${id} has changed in the meantime; list it again`);
    const outcome = retry ? "not done; the next run calls again" : "done";
    print(`${oneLine(step.name)} of ${oneLine(step.handler)}: ${outcome}`);
  };
}

function checkedJson(text: string) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    refuse(`--result is not JSON: ${text.slice(0, 200)}`);
  }
}
