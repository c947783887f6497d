import { isDeepStrictEqual } from "node:util";
import type { TableDescription } from "@aws-sdk/client-dynamodb";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { routed } from "../../app/registry/registry.ts";
import { indexFault } from "../../aws/tables/tables.ts";
import { type FunctionMark, markOf } from "../../hosts/lambda-http/bind.ts";
import {
  type Entry,
  frontMistakes,
  indexMistakes,
  streamMistakes,
  type WantedFront,
  webRevisionType,
} from "./check-fronts.ts";
import { messageIds, receivedRuleId, tableId, tableParts, tableType } from "./data-parts.ts";
import { type ComparedTemplate, resolved } from "./difference.ts";
import { allowsLoops } from "./function-part.ts";
import { exportName, functionsOf } from "./functions.ts";
import { type NeededTable, type Needs, needsOf } from "./needs.ts";
import { namePrefix } from "./parameters.ts";
import { logicalId, type Members, own } from "./template.ts";

/** Mistakes that would fail only after deployment. */
export function mistakes(
  server: DeclaredServer,
  template: ComparedTemplate,
  entry?: Entry,
  wanted: WantedFront = {},
) {
  const needs = needsOf(server, { prefix: namePrefix });
  const functions = functionsIn(template);
  const hasTables = Object.values(template.Resources).some(({ Type }) => Type === tableType);
  if (!hasTables && functions.length === 0)
    return ["the template has neither tables nor functions"];
  return [
    ...(hasTables ? dataMistakes(needs, template) : []),
    ...(functions.length > 0 ? functionMistakes(server, needs, functions) : []),
    ...frontMistakes(template, wanted),
    ...(entry === undefined
      ? []
      : [
          ...entryMistakes(expectedMarks(server, needs), functions, entry),
          ...streamMistakes(template, functions, entry),
          ...indexMistakes(template, entry),
        ]),
  ];
}

function dataMistakes(needs: Needs, template: ComparedTemplate) {
  const ids = [
    needs.bus && messageIds.bus,
    needs.events && messageIds.events.queue,
    needs.jobs && messageIds.jobs.queue,
    needs.received && messageIds.received.queue,
    ...(needs.received?.rules.map(receivedRuleId) ?? []),
  ];
  return [
    ...needs.tables.flatMap((table) => tableMistakes(table, template)),
    ...ids
      .filter((id) => id !== undefined && !Object.hasOwn(template.Resources, id))
      .map((id) => `the server needs ${id}, which is missing in the template`),
  ];
}

/** Properties that a server relies on. `keelson doctor` checks protection and recovery. */
const relied = ["KeySchema", "TimeToLiveSpecification", "StreamSpecification"] as const;

function tableMistakes(table: NeededTable, template: ComparedTemplate) {
  const [name, id] = [`the table ${table.name}`, tableId(table.name)];
  const found = own(template.Resources, id);
  if (found?.Type !== tableType) return [`${name} is declared, and the template has no ${id}`];
  const { Properties: has = {} } = found;
  const wanted = tableParts(table)[0]?.Resources?.[id]?.Properties;
  // Safe cast: the member names are DynamoDB's, and `indexFault` reports anything else.
  const described = {
    AttributeDefinitions: listOf(has["AttributeDefinitions"]),
    GlobalSecondaryIndexes: listOf(has["GlobalSecondaryIndexes"]),
  } as TableDescription;
  return [
    ...relied
      .filter((member) => !isDeepStrictEqual(has[member], wanted?.[member]))
      .map((member) => `${name}: the ${member} of ${id} differs from the declaration`),
    ...table.indexes.flatMap((index) => {
      const fault = indexFault(index, table, described);
      return fault === undefined || fault.kind === "extra"
        ? []
        : [`the index ${index.name} of ${name}: in ${id} ${fault.message}`];
    }),
  ];
}

type TemplateFunction = ReturnType<typeof functionsIn>[number];

function functionsIn(template: ComparedTemplate) {
  return Object.entries(template.Resources).flatMap(([id, { Type, Properties = {} }]) => {
    if (Type === webRevisionType) return [webFunction(id, Properties)];
    const { Handler, Environment, RecursiveLoop } = resolved(Properties, template);
    const [, module = "", name = ""] = /([^/]*)\.([^./]+)$/.exec(String(Handler)) ?? [];
    const { Variables = {} }: { Variables?: object } = Object(Environment);
    return Type === "AWS::Lambda::Function" && name !== ""
      ? [{ id, module, name, variables: Object.keys(Variables), RecursiveLoop }]
      : [];
  });
}

/** It answers requests in place of the function `http`, but a module does not export it. */
function webFunction(id: string, { ServiceConfig }: Members) {
  const { EnvironmentVariables = {} }: { EnvironmentVariables?: object } = Object(ServiceConfig);
  const variables = Object.keys(EnvironmentVariables);
  return { id, module: "", name: "http", variables, RecursiveLoop: undefined };
}

function functionMistakes(server: DeclaredServer, needs: Needs, functions: TemplateFunction[]) {
  const names = new Set(functions.map(({ name }) => name));
  const shape = handlerMarks(server).some(([name]) => names.has(name)) ? "each" : "one";
  const needed = functionsOf(server, needs, shape);
  const missing = needed.filter(({ name }) => !names.has(name));
  const told = new Set(functions.flatMap(({ variables }) => variables));
  const untold = needs.tables.filter(({ variable }) => !told.has(variable));
  const ofQueues = new Set(needed.flatMap((one) => (one.calledBy === "queues" ? one.name : [])));
  const stopped = functions.filter(
    ({ name, RecursiveLoop }) => ofQueues.has(name) && RecursiveLoop !== allowsLoops,
  );
  return [
    ...missing.map(
      ({ name }) => `the server needs a function ${name}, which is missing in the template`,
    ),
    ...untold.map(
      ({ name, variable }) =>
        `the table ${name} is declared, but no function has the variable ${variable}`,
    ),
    ...stopped.map(
      ({ id }) =>
        `${id} lets Lambda drop a message after 16 rounds through its queue; give it RecursiveLoop: ${allowsLoops}`,
    ),
  ];
}

type Marks = readonly (readonly [name: string, mark: FunctionMark])[];

function expectedMarks(server: DeclaredServer, needs: Needs): Marks {
  const kinds = functionsOf(server, needs, "one");
  return [...kinds.map(({ name: kind }) => [kind, { kind }] as const), ...handlerMarks(server)];
}

function handlerMarks({ registry }: DeclaredServer): Marks {
  return routed(registry.handlers.values()).map(({ target: { name: handler } }) => [
    exportName(handler),
    { kind: "handler", handler },
  ]);
}

function entryMistakes(
  marks: Marks,
  functions: readonly TemplateFunction[],
  { name: module, exports }: Entry,
) {
  const expected = new Map(marks);
  const called = functions.filter((one) => one.module === module);
  if (called.length === 0) return [`the template has no function whose handler is in ${module}`];
  return called.flatMap(({ id, name }) => {
    const exported = own(exports, name);
    if (typeof exported !== "function")
      return `${id} calls ${module}.${name}, and ${module} exports no such function; keelson's there are ${markedIn(exports)}`;
    const [marked, wanted] = [markOf(exported), expected.get(name)];
    // An unmarked export may wrap a keelson function, or belong to the application.
    if (marked === undefined || wanted === undefined) return [];
    const { stream: _, ...is } = marked;
    if (isDeepStrictEqual(is, wanted)) return [];
    return `${id} calls ${module}.${name}, which has to be ${written(wanted)} and is ${written(is)}`;
  });
}

/** A bundle may also export code that its parts share. */
function markedIn(exports: Entry["exports"]) {
  const marked = Object.entries(exports).flatMap(([name, exported]) =>
    typeof exported === "function" && markOf(exported) !== undefined ? [name] : [],
  );
  return marked.join(", ") || "none";
}

function written({ kind, handler }: FunctionMark) {
  const given = handler === undefined ? "" : `, ${JSON.stringify(handler)}`;
  return `lambda${logicalId(kind === "stream" ? "outbox" : kind)}(server${given})`;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
