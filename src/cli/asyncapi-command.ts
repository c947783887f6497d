import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { asyncApiDocument } from "../contract/asyncapi.ts";
import type { CommandContext } from "./command-context.ts";
import { loadServer } from "./load-server.ts";
import { oneLine } from "./one-line.ts";
import { runCommand, UsageError } from "./run-command.ts";

/** What `keelson asyncapi --help` prints. */
export const asyncApiUsage = `Usage: keelson asyncapi <module> [options]

Writes the AsyncAPI 3 document of a server: its events, jobs and deliveries, as they are on the wire. The same
declarations give the same document, whatever the environment.

  <module>        exports the result of buildServer as \`server\`; it must not start anything

Options:
  --out <file>    where it is written (default: it is printed)
  --help          print this text

Schemas that no JSON Schema can be made of are named on stderr, and stand in the document with x-keelson-unsaid.

Exit codes: 0 done; 1 failed, or a schema is named; 2 wrong usage.`;

/** Runs `keelson asyncapi` and returns its exit code: 0, 1 where it failed or a schema cannot say itself, 2 where it was used wrongly. */
export function runAsyncApiCommand(args: readonly string[], context: CommandContext): Promise<number> {
  const run = async ({ out }: ReturnType<typeof parse>["values"], module: string | undefined) => {
    if (module === undefined) throw new UsageError("no module is given; use keelson asyncapi <module>");
    const { document, unsaid } = await asyncApiDocument(await loadServer(module), dirname(resolve(module)));
    await write(JSON.stringify(document, undefined, 2), out, context);
    for (const { where, vendor, why } of unsaid) context.complain(oneLine(`keelson: ${where} (${vendor}): ${why}`));
    return unsaid.length === 0 ? 0 : 1;
  };
  return runCommand({ usage: asyncApiUsage, parse, run }, args, context);
}

async function write(text: string, out: string | undefined, { print }: CommandContext): Promise<void> {
  if (out === undefined) return print(text);
  await mkdir(dirname(resolve(out)), { recursive: true });
  await writeFile(out, `${text}\n`);
  print(`${out}: ${Buffer.byteLength(text) + 1} bytes`);
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { out: { type: "string" }, help: { type: "boolean", default: false } },
  });
}
