import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { UnsaidSchema } from "../../../app/openapi/json-schema.ts";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import type { CommandContext } from "../setup/command-context.ts";
import { loadServer } from "../setup/load-server.ts";
import { oneLine } from "../setup/one-line.ts";
import { runCommand, UsageError } from "../setup/run-command.ts";
import { writeText } from "../setup/write-text.ts";

/** A command that makes one document of a server. */
export interface DocumentCommand {
  /** As it is typed: `openapi`. */
  readonly name: string;
  /** What `--help` prints. */
  readonly usage: string;
  /** Makes the text, and names the schemas that cannot say themselves; packages are looked for from `directory` on. */
  readonly make: (
    server: DeclaredServer,
    directory: string,
  ) => Promise<{ readonly text: string; readonly unsaid: readonly UnsaidSchema[] }>;
}

/** Runs it and returns its exit code: 0, 1 where it failed or a schema cannot say itself, 2 where it was used wrongly. */
export function runDocumentCommand(
  { name, usage, make }: DocumentCommand,
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  const run = async ({ out }: ReturnType<typeof parse>["values"], module: string | undefined) => {
    if (module === undefined)
      throw new UsageError(`no module is given; use keelson ${name} <module>`);
    const { text, unsaid } = await make(await loadServer(module), dirname(resolve(module)));
    await write(text, out, context);
    for (const { where, vendor, why } of unsaid)
      context.complain(oneLine(`keelson: ${where} (${vendor}): ${why}`));
    return unsaid.length === 0 ? 0 : 1;
  };
  return runCommand({ usage, parse, run }, args, context);
}

async function write(
  text: string,
  out: string | undefined,
  { print }: CommandContext,
): Promise<void> {
  if (out === undefined) return print(text.trimEnd());
  await writeText(out, text);
  print(`${out}: ${Buffer.byteLength(text)} bytes`);
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { out: { type: "string" }, help: { type: "boolean", default: false } },
  });
}
