import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  isEventType,
  type RawOptions,
  type Report,
  unknownOptions,
} from "../../base/errors/declared.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { isChannelName } from "../../parts/messages/delivery.ts";
import { isStandardSchema } from "./declare.ts";
import type {
  ChannelDeclaration,
  ConsumerDeclaration,
  EventDeclaration,
  JobDeclaration,
} from "./message-handlers.ts";

/** Channels that every server has. */
export const builtInChannels: readonly string[] = Object.freeze(["log", "webhook"]);

export function event(
  feature: string,
  type: string,
  schema: unknown,
  options: unknown,
  report: Report,
): EventDeclaration {
  const key = `event ${named(type)}`;
  if (!isNamed(type, isEventType)) {
    const message = `type ${quoted(type)} is not <entity>.<event name>`;
    report({
      key,
      rule: "event-type",
      message,
      fix: 'use two kebab-case words, for example "file.created"',
    });
  }
  requireSchema(key, "the second argument", schema, report);
  const keptDays =
    options === undefined ? undefined : keptDaysOf(key, options as RawOptions, report); // safe: `RawOptions` assumes nothing
  // Safe: a value that is not a schema is already reported.
  return {
    feature,
    type: named(type),
    schema: schema as StandardSchemaV1,
    ...(keptDays === undefined ? {} : { keptDays }),
  };
}

/** Longest retention of an event, in days. `keep: true` keeps events longer. */
const mostKeptDays = 3_650;

function keptDaysOf(key: string, options: RawOptions, report: Report): number | undefined {
  const { keepDays, keep } = options ?? {};
  unknownOptions(key, options, ["keepDays", "keep"], report);
  if (keep === true && keepDays === undefined) return Number.POSITIVE_INFINITY;
  if (
    keep === undefined &&
    Number.isInteger(keepDays) &&
    Number(keepDays) >= 1 &&
    Number(keepDays) <= mostKeptDays
  ) {
    return Number(keepDays);
  }
  const message = `its third argument is ${quoted(options)}`;
  report({
    key,
    rule: "event-keep",
    message,
    fix: `use { keepDays: 30 }, from 1 to ${mostKeptDays}, or { keep: true } for ever`,
  });
  return undefined;
}

/** Registers a consumer. Boot checks that its event is declared. */
export function consumer(
  feature: string,
  type: string,
  name: string,
  run: unknown,
  report: Report,
): ConsumerDeclaration {
  const fullName = `${feature}.${named(type).split(".")[0]}.${named(name)}`;
  if (!isNamed(name, isChannelName)) {
    const message = `name ${quoted(name)} of a consumer is not in kebab case`;
    report({
      key: fullName,
      rule: "consumer-name",
      message,
      fix: 'name what it does, for example "enqueue-scan"',
    });
  }
  requireFunction(fullName, "the third argument", run, report);
  return { feature, name: fullName, type: named(type), run: run as ConsumerDeclaration["run"] }; // safe: another type is already reported
}

export function job(
  feature: string,
  name: string,
  options: RawOptions,
  report: Report,
): JobDeclaration {
  const fullName = `${feature}.${named(name)}`;
  const given = options ?? {};
  unknownOptions(fullName, given, ["input", "handler", "dedupKey", "dedupScope", "order"], report);
  if (!isNamed(name, isEventType)) {
    const message = `name ${quoted(name)} is not <entity>.<operation>`;
    report({
      key: fullName,
      rule: "job-name",
      message,
      fix: 'use two kebab-case words, for example "file.scan"',
    });
  }
  requireSchema(fullName, "`input`", given["input"], report);
  requireFunction(fullName, "`handler`", given["handler"], report);
  for (const option of ["dedupKey", "order"]) {
    if (given[option] !== undefined)
      requireFunction(fullName, `\`${option}\``, given[option], report);
  }
  const { dedupScope = "tenant" } = given;
  if (dedupScope !== "tenant" && dedupScope !== "user") {
    const message = `\`dedupScope\` is ${quoted(dedupScope)}`;
    report({ key: fullName, rule: "dedup-scope", message, fix: 'use "tenant" or "user"' });
  }
  return {
    feature,
    name: fullName,
    // Safe from here on: wrong types are already reported, and a server with problems is never
    // built.
    input: given["input"] as StandardSchemaV1,
    run: given["handler"] as JobDeclaration["run"],
    dedupKey: given["dedupKey"] as JobDeclaration["dedupKey"],
    dedupScope: dedupScope as JobDeclaration["dedupScope"],
    order: given["order"] as JobDeclaration["order"],
  };
}

export function channel(
  feature: string,
  name: string,
  options: RawOptions,
  report: Report,
): ChannelDeclaration {
  const key = `channel ${named(name)}`;
  const given = options ?? {};
  unknownOptions(key, given, ["input", "send"], report);
  if (!isNamed(name, isChannelName)) {
    const message = `channel name ${quoted(name)} is not in kebab case`;
    report({
      key,
      rule: "channel-name",
      message,
      fix: "name it with lower-case letters, digits and hyphens",
    });
  }
  if (builtInChannels.includes(name)) {
    const message = `channel name ${quoted(name)} is keelson's own`;
    report({ key, rule: "channel-reserved", message, fix: "choose another name" });
  }
  requireSchema(key, "`input`", given["input"], report);
  requireFunction(key, "`send`", given["send"], report);
  return {
    feature,
    name: named(name),
    input: given["input"] as StandardSchemaV1, // safe, here and below: other types are already reported
    send: given["send"] as ChannelDeclaration["send"],
  };
}

function isNamed(name: unknown, isName: (text: string) => boolean): boolean {
  return typeof name === "string" && isName(name);
}

/** Returns a name as a string, even if the caller passed another type. */
function named(name: unknown): string {
  return typeof name === "string" ? name : quoted(name);
}

function requireSchema(key: string, what: string, schema: unknown, report: Report): void {
  if (isStandardSchema(schema)) return;
  report({
    key,
    rule: "schema",
    message: `${what} is not a Standard Schema`,
    fix: "pass a schema of zod, valibot or arktype",
  });
}

function requireFunction(key: string, what: string, given: unknown, report: Report): void {
  if (typeof given === "function") return;
  report({
    key,
    rule: "handler",
    message: `${what} is not a function`,
    fix: "pass async (ctx, payload) => ...",
  });
}
