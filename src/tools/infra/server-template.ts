import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { dataElsewhere, messageParts, ownData, tableParts } from "./data-parts.ts";
import { type Extension, environmentWith, extended } from "./extension.ts";
import type { Front } from "./front.ts";
import { type FrontName, frontNamed } from "./fronts.ts";
import { authSecretParts, environmentOf, functionParts } from "./function-part.ts";
import { functionsOf, type NeededFunction, type Shape } from "./functions.ts";
import { alarmParts, limitedAlarm, metricParts, metricVariables } from "./metric-parts.ts";
import { type FairStep, type Needs, needsOf } from "./needs.ts";
import {
  codeParameters,
  customerKeyParts,
  dataParameters,
  longestDataPrefix,
  longestFunctionPrefix,
  longestRulePrefix,
  nameParameter,
  namePrefix,
} from "./parameters.ts";
import { type Template, templateOf } from "./template.ts";
import { triggerParts } from "./trigger-parts.ts";

export type ServerPart = keyof typeof descriptions;

export interface ServerTemplateOptions {
  /** Names start with `<dynamodb.prefix>-<stage>`. */
  readonly stage: string;
  readonly part?: ServerPart;
  readonly shape?: Shape;
  /** The front that passes on requests. Default: an HTTP API. */
  readonly front?: FrontName;
  /** Whether the front streams responses. */
  readonly stream?: boolean;
  readonly extension?: Extension;
  /** Step of the deployment to fair queues. Default `off`. */
  readonly fair?: FairStep;
  /** Refusals by rate limits a minute above which an alarm is raised. Default: no such alarm. */
  readonly limited?: number | undefined;
}

const descriptions = {
  data: "Tables, bus and queues of a keelson server. Made by keelson infra: do not edit.",
  functions:
    "Functions, API, roles and alarms of a keelson server. Made by keelson infra: do not edit.",
  all: "A keelson server. Made by keelson infra: do not edit.",
};

/**
 * @throws Error if names are too long or collide, the extension does not fit, or the alarm `limited`
 * has no metric.
 */
export function serverTemplate(
  server: DeclaredServer,
  {
    stage,
    part = "all",
    shape = "one",
    front = "http",
    stream = false,
    extension = { part: {}, variables: {} },
    fair = "off",
    limited,
  }: ServerTemplateOptions,
): Template {
  const needs = needsOf(server, { prefix: namePrefix, fair });
  const functions = part === "data" ? [] : functionsOf(server, needs, shape);
  const longest = Math.min(
    longestDataPrefix,
    longestFunctionPrefix(functions),
    longestRulePrefix(needs.received?.rules ?? []),
  );
  const template = templateOf(descriptions[part], [
    nameParameter(server.options.dynamodb?.prefix ?? "keelson", stage, longest),
    ...customerKeyParts,
    ...(part === "functions"
      ? []
      : [dataParameters, ...needs.tables.flatMap(tableParts), ...messageParts(needs)]),
    ...(part === "data"
      ? []
      : [
          ...codeParts(server, needs, functions, frontNamed(front, stream), part, extension),
          ...limitedAlarm(server, limited),
        ]),
  ]);
  return extended(template, extension);
}

function codeParts(
  server: DeclaredServer,
  needs: Needs,
  functions: readonly NeededFunction[],
  front: Front,
  part: ServerPart,
  extension: Extension,
) {
  const { options } = server;
  const place = part === "all" ? ownData : dataElsewhere(needs);
  const own = { ...environmentOf(needs, place), ...metricVariables(server) };
  const environment = environmentWith(own, extension);
  const kindOf = ({ calledBy }: NeededFunction) =>
    calledBy === "requests" ? front.requestKind : front.eventKind;
  return [
    codeParameters(functions.some((one) => !(front.isWeb && one.calledBy === "requests"))),
    ...front.parameters,
    place.part,
    ...(needs.hasAuthSecret ? authSecretParts : []),
    ...functions.flatMap((one) => functionParts(one, needs, place, environment, kindOf(one))),
    ...front.parts(functions, options.basePath ?? ""),
    ...triggerParts(functions, needs, place),
    ...alarmParts(functions, needs, place, front, options.metrics !== undefined),
    ...metricParts(server),
  ];
}
