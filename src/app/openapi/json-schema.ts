import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { arktypeSchema, isArkType } from "./arktype-schema.ts";
import { importFrom } from "./import-from.ts";
import { withMissingMembers } from "./missing-members.ts";
import {
  type JsonSchema,
  mapParts,
  type ReadOptions,
  type Side,
  unsaid,
  unsaidMark,
} from "./schema.ts";
import { withRefusedTexts } from "./sent-texts.ts";
import { valibotSchema } from "./valibot-schema.ts";
import { isZod, zodSchema } from "./zod-schema.ts";

export type { JsonSchema } from "./schema.ts";

/** A schema, or a part of one, that no JSON Schema says. */
export interface UnsaidSchema {
  /** Whose schema, and which part of it: `files.file.create input: size`. */
  readonly where: string;
  /** The library that made it: `zod`. */
  readonly vendor: string;
  /** Why, and what to do. */
  readonly why: string;
}

/** Reads the JSON Schema of Standard Schemas. */
export interface SchemaReader {
  /**
   * The JSON Schema of one side, without `$schema`; its `$defs` are its own. What cannot be said stands in it with
   * `x-keelson-unsaid`, and has an entry in `unsaid`.
   *
   * @param isSentAsText - of an input's fields: whether requests have one as a text and nothing else. Default: none
   */
  read(
    schema: StandardSchemaV1,
    side: Side,
    where: string,
    isSentAsText?: (field: string) => boolean,
  ): Promise<JsonSchema>;
  /** What could not be said so far. */
  readonly unsaid: readonly UnsaidSchema[];
}

export interface SchemaReaderOptions {
  /** Where packages are looked for before keelson's own place: the application's directory. Default: the process's. */
  readonly from?: string;
}

/** Creates a {@link SchemaReader}. It asks libraries of schemas, and loads what they need for it at the first of their schemas. */
export function createSchemaReader({
  from = process.cwd(),
}: SchemaReaderOptions = {}): SchemaReader {
  const entries = new Map<string, UnsaidSchema>();
  const load = (name: string, member: string) => importFrom(name, member, from);

  const note = (said: unknown, entry: Omit<UnsaidSchema, "why">, path: readonly string[] = []) => {
    if (typeof said !== "object" || said === null) return;
    const { [unsaidMark]: why } = said as JsonSchema; // safe: any member of an object may be read
    if (typeof why === "string") {
      const where = path.length === 0 ? entry.where : `${entry.where}: ${path.join(".")}`;
      entries.set(`${where}\n${why}`, { ...entry, where, why });
    }
    for (const [name, part] of Object.entries(said))
      note(part, entry, walked.has(name) ? path : [...path, name]);
  };
  const read: SchemaReader["read"] = async (schema, side, where, isSentAsText) => {
    const all = await schemaOf(schema, { side, load }).catch((error: unknown) =>
      unsaid(error instanceof Error ? error.message : String(error)),
    );
    const said =
      isSentAsText === undefined ? all : await withRefusedTexts(schema, all, isSentAsText);
    const { $schema: _, ...own } = withoutEmptyTuples(
      side === "output" ? withMissingMembers(said) : said,
    );
    note(own, { where, vendor: schema["~standard"].vendor });
    return own;
  };
  return {
    read,
    get unsaid() {
      return [...entries.values()];
    },
  };
}

/** Words of JSON Schema on the way to a field. */
const walked: ReadonlySet<string> = new Set(["properties", "$defs"]);

/** JSON Schema has no empty list of schemas. */
function withoutEmptyTuples(given: JsonSchema): JsonSchema {
  const schema = mapParts(given, withoutEmptyTuples);
  const { prefixItems, ...rest } = schema;
  return Array.isArray(prefixItems) && prefixItems.length === 0 ? rest : schema;
}

async function schemaOf(schema: StandardSchemaV1, options: ReadOptions): Promise<JsonSchema> {
  const standard = schema["~standard"];
  // By each library's own means where it has them: what they say by the standard's leaves dates and conversions out silently.
  if (isZod(schema)) return zodSchema(schema, options);
  if (isArkType(schema)) return arktypeSchema(schema, options);
  if (hasJsonSchema(standard))
    return standard.jsonSchema[options.side]({ target: "draft-2020-12" });
  if (standard.vendor === "valibot") return valibotSchema(schema, options);
  throw new TypeError(
    standard.vendor === "zod"
      ? "zod 3 makes no JSON Schema; use zod 4"
      : `${standard.vendor} has no Standard JSON Schema; give it ["~standard"].jsonSchema`,
  );
}

function hasJsonSchema(
  standard: StandardSchemaV1.Props,
): standard is StandardSchemaV1.Props & StandardJSONSchemaV1.Props {
  return "jsonSchema" in standard;
}
