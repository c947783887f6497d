import { flag, text } from "../setup/define-command.ts";

export const ofExport = {
  out: text(
    "<file>",
    "the file for the rows, one line of JSON each; has this name once it is complete",
  ),
  force: flag("replaces an existing file"),
};
export const ofErase = {
  "dry-run": flag("only counts"),
  yes: flag("does not ask; required without a terminal"),
};
export const ofWalks = {
  state: text("<file>", "a file for the progress, from which an interrupted run continues"),
};
export const ofList = {
  limit: text("<n>", "only one page, of 1 to 1000 tenants (default: all)"),
  cursor: text("<text>", "continues after a page"),
};
export const ofCreate = {
  name: text("<text>", "the tenant's name (default: none)"),
  "time-zone": text("<name>", "the IANA time zone of its schedules (default: UTC)"),
};
export const ofSuspend = { reason: text("<text>", "the reason, required; callers do not see it") };
export const ofAll = { json: flag("prints the result as JSON, and lists one tenant per line") };
export const flags = {
  ...{ ...ofExport, ...ofErase, ...ofWalks },
  ...{ ...ofList, ...ofCreate, ...ofSuspend, ...ofAll },
};

export type OptionName = keyof typeof flags;

/** Options of each action, in addition to `json`. */
export const optionsOf = {
  list: optionNames(ofList),
  create: optionNames(ofCreate),
  suspend: optionNames(ofSuspend),
  resume: [],
  export: optionNames({ ...ofExport, ...ofWalks }),
  erase: optionNames({ ...ofErase, ...ofWalks }),
} satisfies Readonly<Record<string, readonly OptionName[]>>;

export function optionNames<Declared extends object>(declared: Declared): (keyof Declared)[] {
  return Object.keys(declared) as (keyof Declared)[]; // safe: the object is a literal
}
