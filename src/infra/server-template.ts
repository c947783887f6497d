import type { DeclaredServer } from "../declare/declared-server.ts";
import { messageParts } from "./message-parts.ts";
import { needsOf } from "./needs.ts";
import { dataParameters, namePrefix } from "./parameters.ts";
import { tablePart } from "./table-part.ts";
import { type Template, templateOf } from "./template.ts";

/** What a template of a server is to hold. */
export interface ServerTemplateOptions {
  /** Where it is deployed: names begin with `<dynamodb.prefix>-<stage>`. */
  readonly stage: string;
}

/**
 * The template of what holds a server's data: tables, bus and queues. The same server gives the same template, whatever
 * the environment.
 *
 * @throws Error where names are too long, or two of them come to one logical ID.
 */
export function dataTemplate(server: DeclaredServer, { stage }: ServerTemplateOptions): Template {
  const needs = needsOf(server, { prefix: namePrefix });
  const prefix = server.options.dynamodb?.prefix ?? "keelson";
  return templateOf("Tables, bus and queues of a keelson server. Made by keelson infra: do not edit.", [
    dataParameters(prefix, stage),
    ...needs.tables.map(tablePart),
    ...messageParts(needs),
  ]);
}
