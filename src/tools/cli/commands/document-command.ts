import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { UnsaidSchema } from "../../../app/openapi/json-schema.ts";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import type { CommandContext } from "../setup/command-context.ts";
import { loadServer } from "../setup/load-server.ts";
import { oneLine } from "../setup/one-line.ts";
import { runCommand, UsageError } from "../setup/run-command.ts";
import { writeText } from "../setup/write-text.ts";

/** Command that generates one document of a server. */
export interface DocumentCommand {
  /** Name on the command line, for example `openapi`. */
  readonly name: string;
  readonly usage: string;
  /**
   * Generates the document and lists the schemas without a JSON Schema. Resolves packages from
   * `directory`.
   */
  readonly make: (
    server: DeclaredServer,
    directory: string,
  ) => Promise<{ readonly text: string; readonly unsaid: readonly UnsaidSchema[] }>;
}

/**
 * Runs the command and returns its exit code: 0, 1 if it failed or a schema has no JSON Schema, 2
 * if its usage was wrong.
 */
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
