import { dirname, resolve } from "node:path";
import type { UnsaidSchema } from "../../../app/openapi/json-schema.ts";
import { documentText } from "../../../app/openapi/openapi.ts";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { defineCommand, moduleOf, type RunCommand, text } from "../setup/define-command.ts";
import { loadServer } from "../setup/load-server.ts";
import { oneLine } from "../setup/one-line.ts";
import { writeText } from "../setup/write-text.ts";

export interface DocumentCommand {
  readonly name: string;
  readonly purpose: string;
  /** Creates the document. Resolves packages from `directory`. */
  readonly make: (
    server: DeclaredServer,
    directory: string,
  ) => Promise<{
    readonly document: Readonly<Record<string, unknown>>;
    readonly unsaid: readonly UnsaidSchema[];
  }>;
}

export function documentUsage({ name, purpose }: Omit<DocumentCommand, "make">): string {
  return `Usage: keelson ${name} <module> [options]

${purpose}

  <module>        exports the result of buildServer as \`server\`; it must not start anything

Options:
  --out <file>    where it is written (default: it is printed)
  --help          print this text

Schemas that no JSON Schema can be made of are named on stderr, and stand in the document with x-keelson-unsaid.

Exit codes: 0 done; 1 failed, or a schema is named; 2 wrong usage.`;
}

export function documentCommand(command: DocumentCommand): RunCommand {
  const { name, make } = command;
  return defineCommand({
    usage: documentUsage(command),
    flags: { out: text },
    run: async ({ out }, [given], { print, complain }) => {
      const module = moduleOf(given, name);
      const { document, unsaid } = await make(await loadServer(module), dirname(resolve(module)));
      const written = documentText(document);
      if (out === undefined) print(written.trimEnd());
      else {
        await writeText(out, written);
        print(`${out}: ${Buffer.byteLength(written)} bytes`);
      }
      for (const { where, vendor, why } of unsaid)
        complain(oneLine(`keelson: ${where} (${vendor}): ${why}`));
      return unsaid.length === 0 ? 0 : 1;
    },
  });
}
