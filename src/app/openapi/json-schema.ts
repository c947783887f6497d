import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { arktypeSchema, isArkType } from "./arktype-schema.ts";
import {
  type ImportedFunction,
  isObject,
  type JsonSchema,
  mapParts,
  noTextMark,
  type ReadOptions,
  type Side,
  saysNothing,
  target,
  unsaid,
  unsaidMark,
} from "./schema.ts";
import { valibotSchema } from "./valibot-schema.ts";
import { isZod, zodSchema } from "./zod-schema.ts";

export type { JsonSchema } from "./schema.ts";

export interface UnsaidSchema {
  /** Owner and part of the schema: `files.file.create input: size`. */
  readonly where: string;
  readonly vendor: string;
  readonly why: string;
}

export interface ServerDocument {
  /** Byte-identical for the same declarations. */
  readonly document: JsonSchema;
  readonly unsaid: readonly UnsaidSchema[];
}

export type SchemaReader = ReturnType<typeof createSchemaReader>;

/**
 * Loads a library's converter with its first schema.
 *
 * @param from - directory searched for packages before keelson's own location, usually the
 * application's. Default: the working directory of the process.
 */
export function createSchemaReader({
  from = process.cwd(),
}: {
  readonly from?: string | undefined;
} = {}) {
  const reads: UnsaidSchema[][] = [];
  const load = (name: string, member: string) => importFrom(name, member, from);
  const laterMoment = createLaterMoment();

  const note = (
    entries: UnsaidSchema[],
    said: unknown,
    entry: Omit<UnsaidSchema, "why">,
    path: readonly string[] = [],
  ) => {
    if (typeof said !== "object" || said === null) return;
    const { [unsaidMark]: why } = said as JsonSchema; // safe: any member of an object can be read
    if (typeof why === "string") {
      const where = path.length === 0 ? entry.where : `${entry.where}: ${path.join(".")}`;
      entries.push({ ...entry, where, why });
    }
    for (const [name, part] of Object.entries(said))
      note(entries, part, entry, walked.has(name) ? path : [...path, name]);
  };
  return {
    /**
     * Omits `$schema`, keeps `$defs`. Parts that cannot be expressed carry `x-keelson-unsaid`, with
     * an entry in `unsaid`.
     *
     * @param isSentAsText - whether requests send an input field only as a string. Default: no
     * field
     */
    read: async (
      schema: StandardSchemaV1,
      side: Side,
      where: string,
      isSentAsText?: (field: string) => boolean,
    ): Promise<JsonSchema> => {
      const entries: UnsaidSchema[] = [];
      reads.push(entries);
      const all = await schemaOf(schema, { side, load, laterMoment }).catch((error: unknown) =>
        unsaid(error instanceof Error ? error.message : String(error)),
      );
      const said = isSentAsText ? await withRefusedTexts(schema, all, isSentAsText) : all;
      const { $schema: _, ...own } = withoutEmptyTuples(
        side === "output" ? withMissingMembers(said) : said,
      );
      note(entries, own, { where, vendor: schema["~standard"].vendor });
      return own;
    },
    get unsaid(): readonly UnsaidSchema[] {
      return [
        ...new Map(reads.flat().map((entry) => [`${entry.where}\n${entry.why}`, entry])).values(),
      ];
    },
  };
}

/**
 * Stops the thread for 2 ms: in a test, `Date` and timers may be frozen. Concurrent callers share
 * one stop, because a document may have hundreds of defaults.
 */
function createLaterMoment() {
  let waiting: Promise<void> | undefined;
  return () => {
    waiting ??= Promise.resolve().then(() => {
      waiting = undefined;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    });
    return waiting;
  };
}

export function titleOf({ openapi }: DeclaredServer["options"]): JsonSchema {
  const { title = "API", version = "0.0.0" } = openapi || {};
  return { title, version };
}

/** Keywords that the path in `where` omits. */
const walked: ReadonlySet<string> = new Set(["properties", "$defs"]);

/** JSON Schema does not allow empty `prefixItems`. */
function withoutEmptyTuples(given: JsonSchema): JsonSchema {
  const schema = mapParts(given, withoutEmptyTuples);
  const { prefixItems, ...rest } = schema;
  return Array.isArray(prefixItems) && prefixItems.length === 0 ? rest : schema;
}

async function schemaOf(schema: StandardSchemaV1, options: ReadOptions): Promise<JsonSchema> {
  const standard = schema["~standard"];
  // The Standard JSON Schema of zod and ArkType omits dates and conversions.
  if (isZod(schema)) return zodSchema(schema, options);
  if (isArkType(schema)) return arktypeSchema(schema, options);
  if ("jsonSchema" in standard)
    // Safe cast: Standard JSON Schema defines this member.
    return (standard as StandardJSONSchemaV1.Props).jsonSchema[options.side]({ target });
  if (standard.vendor === "valibot") return valibotSchema(schema, options);
  throw new TypeError(
    standard.vendor === "zod"
      ? "zod 3 cannot produce JSON Schema; use zod 4"
      : `${standard.vendor} has no Standard JSON Schema; give it ["~standard"].jsonSchema`,
  );
}

/** Members of a response that may be `undefined` are optional, because JSON omits them. */
function withMissingMembers(given: JsonSchema): JsonSchema {
  const schema = mapParts(given, withMissingMembers);
  const { required, ...rest } = schema;
  const { properties } = rest;
  if (!isObject(properties) || !Array.isArray(required)) return schema;
  const sent = required.filter((name) => !mayBeMissing(properties[String(name)]));
  return sent.length === 0 ? rest : { ...schema, required: sent };
}

/** Converters write `undefined` as a schema that matches nothing. */
function mayBeMissing(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { not, anyOf } = schema;
  return (
    saysNothing(schema) ||
    (isObject(not) && saysNothing(not)) ||
    (Array.isArray(anyOf) && anyOf.some(mayBeMissing))
  );
}

/**
 * Loads the application's package, otherwise the package next to keelson. Hidden from bundlers,
 * because few applications have it.
 *
 * @throws Error that names the package to install.
 */
export async function importFrom(
  name: string,
  member: string,
  directory: string,
): Promise<ImportedFunction> {
  for (const place of [join(directory, "package.json"), import.meta.url]) {
    const path = resolved(name, place);
    if (path === undefined) continue;
    const loaded = (await import(/* @vite-ignore */ pathToFileURL(path).href)) as Readonly<
      Record<string, unknown>
    >; // safe: a module is an object
    // Safe cast: it is a function, and callers pass the arguments that the package documents.
    if (typeof loaded[member] === "function") return loaded[member] as ImportedFunction;
    throw new Error(`the application's ${name} has no ${member}; install its latest version`);
  }
  throw new Error(`${name} is not installed in the application; npm install ${name}`);
}

function resolved(name: string, place: string): string | undefined {
  try {
    return createRequire(place).resolve(name);
  } catch {
    return undefined;
  }
}

/**
 * Marks fields that requests send as strings and whose schema rejects numbers or booleans as
 * strings, which their JSON Schema does not show.
 */
async function withRefusedTexts(
  schema: StandardSchemaV1,
  said: JsonSchema,
  isSentAsText: (field: string) => boolean,
): Promise<JsonSchema> {
  const { properties } = said;
  if (!isObject(properties)) return said;
  const fields = await Promise.all(
    Object.entries(properties).map(async ([field, part]): Promise<[string, unknown]> => {
      const isTaken =
        !isSentAsText(field) || !isObject(part) || (await takesText(schema, field, part));
      return [field, isTaken ? part : { ...part, ...noTextMark }];
    }),
  );
  return { ...said, properties: Object.fromEntries(fields) };
}

/** Whether a field also takes its values as strings, as far as the tried values show. */
async function takesText(
  schema: StandardSchemaV1,
  field: string,
  part: JsonSchema,
): Promise<boolean> {
  for (const value of valuesOf(part)) {
    const text = Array.isArray(value) ? value.map(String) : String(value);
    if ((await takes(schema, field, value)) && !(await takes(schema, field, text))) return false;
  }
  return true;
}

/** Returns values to try, or an empty list if the schema accepts strings anyway. */
function valuesOf(part: JsonSchema): readonly unknown[] {
  const { minimum, maximum, exclusiveMinimum, multipleOf, items } = part;
  const choices = [part["anyOf"], part["oneOf"]].flat().filter(isObject);
  if ([part, ...choices].some(isOfText)) return [];
  const given = [
    ...[part["const"], part["enum"], minimum, maximum, Number(exclusiveMinimum) + 1, multipleOf],
    ...[0, 1, [part["type"]].flat().includes("boolean") || undefined],
  ];
  return [
    ...given.flat().filter((value) => typeof value === "number" || typeof value === "boolean"),
    ...(isObject(items) ? valuesOf(items).map((value) => [value, value]) : []),
    ...choices.flatMap(valuesOf),
  ];
}

function isOfText({ type, enum: values, const: value }: JsonSchema): boolean {
  return (
    [type].flat().includes("string") ||
    [values, value].flat().some((one) => typeof one === "string")
  );
}

async function takes(schema: StandardSchemaV1, field: string, value: unknown): Promise<boolean> {
  try {
    const { issues = [] } = await schema["~standard"].validate({ [field]: value });
    return !issues.some(
      ({ path: [first] = [] }) => (typeof first === "object" ? first.key : first) === field,
    );
  } catch {
    return false;
  }
}
