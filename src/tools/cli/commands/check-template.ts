import { parse } from "node:path";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { mistakes } from "../../infra/check.ts";
import type { ComparedTemplate } from "../../infra/difference.ts";
import type { CommandContext } from "../setup/command-context.ts";
import { loadModule } from "../setup/load-server.ts";
import { oneLine } from "../setup/one-line.ts";

export interface Checked {
  readonly file: string;
  readonly template: ComparedTemplate;
  readonly entry: string | undefined;
}

export async function checkTemplate(
  server: DeclaredServer,
  { file, template, entry }: Checked,
  { print, complain }: CommandContext,
): Promise<number> {
  const module =
    entry === undefined ? undefined : { name: parse(entry).name, exports: await loadModule(entry) };
  const found = mistakes(server, template, module);
  for (const mistake of found) complain(`keelson: ${file}: ${oneLine(mistake)}`);
  if (found.length > 0) return 1;
  print(`${file}: fits the server${entry === undefined ? "" : ` and ${entry}`}`);
  return 0;
}
