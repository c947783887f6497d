import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { alarmParts } from "./alarm-parts.ts";
import { apiParts } from "./api-part.ts";
import { type DataPlace, dataElsewhere, ownData } from "./data-place.ts";
import { type Extension, environmentWith, extended } from "./extension.ts";
import { authSecretPart, environmentOf, functionPart } from "./function-part.ts";
import { functionsOf, type NeededFunction, type Shape } from "./functions.ts";
import { messageParts } from "./message-parts.ts";
import { metricParts, metricVariables } from "./metric-parts.ts";
import { type Needs, needsOf } from "./needs.ts";
import {
  customerKeyPart,
  dataParameters,
  functionParameters,
  longestDataPrefix,
  longestFunctionPrefix,
  nameParameter,
  namePrefix,
} from "./parameters.ts";
import { tablePart } from "./table-part.ts";
import { type Template, type TemplatePart, templateOf } from "./template.ts";
import { triggerParts } from "./trigger-parts.ts";

export type ServerPart = "data" | "functions" | "all";

export interface ServerTemplateOptions {
  /** Names start with `<dynamodb.prefix>-<stage>`. */
  readonly stage: string;
  readonly part?: ServerPart;
  readonly shape?: Shape;
  readonly extension?: Extension;
}

const nothing: Extension = { part: {}, variables: {} };

const descriptions: Readonly<Record<ServerPart, string>> = {
  data: "Tables, bus and queues of a keelson server. Made by keelson infra: do not edit.",
  functions:
    "Functions, API, roles and alarms of a keelson server. Made by keelson infra: do not edit.",
  all: "A keelson server. Made by keelson infra: do not edit.",
};

/**
 * Gives the same template in every environment. @throws Error if names are too long or collide, or
 * the extension does not fit.
 */
export function serverTemplate(
  server: DeclaredServer,
  { stage, part = "all", shape = "one", extension = nothing }: ServerTemplateOptions,
): Template {
  const needs = needsOf(server, { prefix: namePrefix });
  const functions = part === "data" ? [] : functionsOf(server, needs, shape);
  const longest = Math.min(longestDataPrefix, longestFunctionPrefix(functions));
  const template = templateOf(descriptions[part], [
    nameParameter(server.options.dynamodb?.prefix ?? "keelson", stage, longest),
    customerKeyPart,
    ...(part === "functions" ? [] : dataParts(needs)),
    ...(part === "data"
      ? []
      : functionParts(
          server,
          needs,
          functions,
          part === "all" ? ownData : dataElsewhere(needs),
          extension,
        )),
  ]);
  return extended(template, extension);
}

export function dataTemplate(
  server: DeclaredServer,
  { stage }: Pick<ServerTemplateOptions, "stage">,
): Template {
  return serverTemplate(server, { stage, part: "data" });
}

function dataParts(needs: Needs): TemplatePart[] {
  return [dataParameters, ...needs.tables.map(tablePart), ...messageParts(needs)];
}

function functionParts(
  server: DeclaredServer,
  needs: Needs,
  functions: readonly NeededFunction[],
  place: DataPlace,
  extension: Extension,
): TemplatePart[] {
  const { options } = server;
  const environment = environmentWith(
    { ...environmentOf(needs, place), ...metricVariables(server) },
    extension,
  );
  return [
    functionParameters,
    place.part,
    ...(needs.hasAuthSecret ? [authSecretPart] : []),
    ...functions.map((one) => functionPart(one, needs, place, environment)),
    ...apiParts(functions, options.basePath ?? ""),
    ...triggerParts(functions, needs, place),
    ...alarmParts(functions, needs, place, options.metrics !== undefined),
    ...metricParts(server),
  ];
}
