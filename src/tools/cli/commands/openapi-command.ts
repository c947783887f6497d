import { documentText } from "../../../app/openapi/openapi.ts";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { serverDocument } from "../../../app/routes/openapi-document.ts";
import type { CommandContext } from "../setup/command-context.ts";
import { runDocumentCommand } from "./document-command.ts";

export const openApiUsage = `Usage: keelson openapi <module> [options]

Writes the OpenAPI 3.1 document of a server. The same declarations give the same document, whatever the environment.

  <module>        exports the result of buildServer as \`server\`; it must not start anything

Options:
  --out <file>    where it is written (default: it is printed)
  --help          print this text

Schemas that no JSON Schema can be made of are named on stderr, and stand in the document with x-keelson-unsaid.

Exit codes: 0 done; 1 failed, or a schema is named; 2 wrong usage.`;

/**
 * Runs `keelson openapi` and returns its exit code: 0, 1 if it failed or a schema has no JSON
 * Schema, 2 if its usage was wrong.
 */
export function runOpenApiCommand(
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  const make = async (server: DeclaredServer, directory: string) => {
    const { document, unsaid } = await serverDocument(server, directory);
    return { text: documentText(document), unsaid };
  };
  return runDocumentCommand({ name: "openapi", usage: openApiUsage, make }, args, context);
}
