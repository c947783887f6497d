import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import {
  dynamicReferences,
  fileReport,
  mostDynamicReferences,
  mostEntries,
  resourceNotes,
} from "../limits.ts";
import { type Template, templateText } from "../template.ts";
import { functionGroups } from "./groups.ts";
import { type NestedTemplates, nestedTemplates } from "./nested-templates.ts";

/** One template, or nested ones if it has more of anything than CloudFormation accepts in one. */
export function templateSet(
  template: Template,
  server: DeclaredServer,
  name: string,
): NestedTemplates {
  const isTooLarge =
    Object.keys(template.Resources).length > mostEntries.Resources ||
    dynamicReferences(templateText(template)) > mostDynamicReferences;
  return isTooLarge
    ? nestedTemplates(template, functionGroups(server), (group) => `${name}.${group.name}.json`)
    : { parent: template, children: new Map() };
}

/** As `sizeReport`, for all templates of a set that was made from `template`. */
export function setReport(template: Template, { parent, children }: NestedTemplates) {
  const { problems, notes } = fileReport(parent, templateText(parent));
  const nested = [...children].flatMap(([file, { template: child }]) =>
    fileReport(child, templateText(child)).problems.map((problem) => `${file}: ${problem}`),
  );
  return {
    problems: [...problems, ...nested],
    notes: [...(children.size > 0 ? [packageNote] : []), ...notes, ...resourceNotes(template)],
  };
}

const packageNote =
  "its functions are in nested templates: run aws cloudformation package first, and deploy its output";
