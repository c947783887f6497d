import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Report } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type {
  ChannelDeclaration,
  ConsumerDeclaration,
  EventDeclaration,
  JobDeclaration,
} from "./message-handlers.ts";
import {
  aFunction,
  aSchema,
  isWord,
  knownOptions,
  named,
  problemsOf,
  required,
  requireOptions,
  requireValue,
  twoWords,
} from "./requirements.ts";

// The casts of options are safe: wrong types are reported, and a server with problems is never
// built.

/** Names of the channels that every server has. */
export const builtInChannels: readonly string[] = Object.freeze(["log", "webhook"]);

export function event(
  feature: string,
  type: string,
  schema: unknown,
  options: unknown,
  report: Report,
): EventDeclaration {
  const key = `event ${named(type)}`;
  const problem = problemsOf(key, report);
  requireValue("type", type, twoWords("event-type", "event name", "file.created"), problem);
  requireValue("the second argument", schema, required(aSchema), problem);
  const keptDays = options === undefined ? undefined : keptDaysOf(key, options, report);
  return {
    feature,
    type: named(type),
    schema: schema as StandardSchemaV1,
    ...(keptDays === undefined ? {} : { keptDays }),
  };
}

const mostKeptDays = 3_650;

function keptDaysOf(key: string, options: unknown, report: Report): number | undefined {
  const { keepDays, keep } = knownOptions(key, options, ["keepDays", "keep"], report);
  if (keep === true && keepDays === undefined) return Number.POSITIVE_INFINITY;
  const days = Number(keepDays);
  if (keep === undefined && Number.isInteger(keepDays) && days >= 1 && days <= mostKeptDays)
    return days;
  const fix = `use { keepDays: 30 }, from 1 to ${mostKeptDays}, or { keep: true } for ever`;
  problemsOf(key, report)("event-keep", `its third argument is ${quoted(options)}`, fix);
  return undefined;
}

/** Declares a consumer. Boot checks that its event is declared. */
export function consumer(
  feature: string,
  type: string,
  name: string,
  run: unknown,
  report: Report,
): ConsumerDeclaration {
  const fullName = `${feature}.${named(type).split(".")[0]}.${named(name)}`;
  const problem = problemsOf(fullName, report);
  if (!isWord(name)) {
    const message = `name ${quoted(name)} of a consumer is not in kebab case`;
    problem("consumer-name", message, 'name what it does, for example "enqueue-scan"');
  }
  requireValue("the third argument", run, required(aFunction()), problem);
  return { feature, name: fullName, type: named(type), run: run as ConsumerDeclaration["run"] };
}

const jobRequirements = {
  input: required(aSchema),
  handler: required(aFunction()),
  dedupKey: aFunction(),
  order: aFunction(),
  dedupScope: {
    accepts: (scope: unknown) => scope === "tenant" || scope === "user",
    rule: "dedup-scope",
    fix: 'use "tenant" or "user"',
  },
};

export function job(
  feature: string,
  name: string,
  options: unknown,
  report: Report,
): JobDeclaration {
  const fullName = `${feature}.${named(name)}`;
  const problem = problemsOf(fullName, report);
  const known = ["input", "handler", "dedupKey", "dedupScope", "order"];
  const given = knownOptions(fullName, options, known, report);
  requireValue("name", name, twoWords("job-name", "operation", "file.scan"), problem);
  requireOptions(given, jobRequirements, problem);
  const { dedupScope = "tenant", dedupKey, order } = given as Partial<JobDeclaration>;
  const { input, handler: run } = given as Pick<JobDeclaration, "input"> & {
    readonly handler: JobDeclaration["run"];
  };
  return { feature, name: fullName, input, run, dedupKey, dedupScope, order };
}

const channelRequirements = { input: required(aSchema), send: required(aFunction()) };

export function channel(
  feature: string,
  name: string,
  options: unknown,
  report: Report,
): ChannelDeclaration {
  const key = `channel ${named(name)}`;
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, Object.keys(channelRequirements), report);
  if (!isWord(name)) {
    const fix = "name it with lower-case letters, digits and hyphens";
    problem("channel-name", `channel name ${quoted(name)} is not in kebab case`, fix);
  }
  if (builtInChannels.includes(name)) {
    const message = `channel name ${quoted(name)} is keelson's own`;
    problem("channel-reserved", message, "choose another name");
  }
  requireOptions(given, channelRequirements, problem);
  const { input, send } = given as Pick<ChannelDeclaration, "input" | "send">;
  return { feature, name: named(name), input, send };
}
