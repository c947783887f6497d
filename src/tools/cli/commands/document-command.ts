import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { asyncApiDocument } from "../../../app/openapi/asyncapi.ts";
import type { UnsaidSchema } from "../../../app/openapi/json-schema.ts";
import { documentText, type OpenApiSpec } from "../../../app/openapi/openapi.ts";
import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import { serverDocument } from "../../../app/routes/openapi-document.ts";
import {
  defineCommand,
  moduleArgument,
  moduleOf,
  oneLine,
  options,
  refuse,
  text,
} from "../setup/define-command.ts";
import { loadServer } from "../setup/load-server.ts";

interface Made {
  readonly document: Readonly<Record<string, unknown>>;
  readonly unsaid: readonly UnsaidSchema[];
}

const openApiSpecs = ["3.1", "3.2"] satisfies readonly OpenApiSpec[];

export const openApi = documentCommand(
  "openapi",
  "Writes the OpenAPI document of a server. The document depends only on the declarations, not on the environment.",
  serverDocument,
  openApiSpecs,
);

export const asyncApi = documentCommand(
  "asyncapi",
  `Writes the AsyncAPI 3 document of a server: the wire format of its events, jobs and deliveries. The document depends
only on the declarations, not on the environment.`,
  asyncApiDocument,
);

/**
 * `make` resolves packages from `directory`.
 *
 * @param specs - versions of the format, the default first. Default: one version, without an option.
 */
function documentCommand<Spec extends string>(
  name: string,
  purpose: string,
  make: (server: DeclaredServer, directory: string, spec?: Spec) => Promise<Made>,
  specs: readonly Spec[] = [],
) {
  const spec = text("<version>", `${specs.join(" or ")} (default: ${specs[0]})`);
  const out = text("<file>", "the file to write (default: standard output)");
  const flags = { out, ...(specs.length > 0 && { spec }) };
  return defineCommand({
    name,
    usage: `Usage: keelson ${name} <module> [options]

${purpose}

${moduleArgument}

${options(flags)}

Schemas that cannot be converted to JSON Schema are listed on stderr, and marked in the document with x-keelson-unsaid.

Exit codes: 0 done; 1 failed, or a schema is listed; 2 wrong usage.`,
    flags,
    run: async ({ out, spec }, [given], { print, complain }) => {
      const module = moduleOf(given, name);
      const known = specs.find((one) => one === spec);
      if (spec !== undefined && known === undefined)
        refuse(`--spec ${JSON.stringify(spec)}: use ${specs.join(" or ")}`);
      const server = await loadServer(module);
      const { document, unsaid } = await make(server, dirname(resolve(module)), known);
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

export async function writeText(file: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(resolve(file)), { recursive: true });
    await writeFile(file, text);
  } catch (error) {
    // Safe cast: the file system only throws errors.
    const { code = "", message } = error as NodeJS.ErrnoException;
    const why = reasons[code] ?? message;
    throw new Error(`${JSON.stringify(file)} cannot be written: ${why}`, { cause: error });
  }
}

const reasons: Readonly<Record<string, string>> = {
  EISDIR: "it is a directory; name a file in it",
  EEXIST: "what should be its directory is a file",
  ENOTDIR: "what should be its directory is a file",
  EACCES: "you have no right to",
  EROFS: "the file system is read-only",
};
