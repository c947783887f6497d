import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Logger } from "../../base/log/logger.ts";
import type { DeclaredServer } from "./declared-server.ts";

/** Maximum number of handlers in one log line, because the length of a line is bounded. */
const namesPerLine = 100;

/** Warns of `output` schemas that accept undeclared members, with the first place in each schema. */
export function warnOfLooseOutputs({
  log,
  server,
}: {
  readonly log: Logger;
  readonly server: Pick<DeclaredServer, "registry">;
}): void {
  const loose = [...server.registry.handlers.values()].flatMap(({ name, output, stream }) => {
    const at = output === undefined ? undefined : looseAt(stream?.item ?? output);
    return at === undefined ? [] : [{ name, at }];
  });
  for (let start = 0; start < loose.length; start += namesPerLine) {
    log.warn("output.loose", { handlers: loose.slice(start, start + namesPerLine) });
  }
}

/**
 * Returns the dotted path of the first place where a schema passes undeclared members through
 * (`result` for the whole schema), or `undefined`. Ignores `any`, `unknown`, records and
 * transforms, which their author chose. Reads only static definitions, so it also ignores lazy
 * schemas. Never throws.
 */
export function looseAt(schema: StandardSchemaV1): string | undefined {
  try {
    const { vendor } = schema["~standard"];
    const partsOf = vendors.get(vendor);
    if (partsOf === undefined) return undefined;
    const root = vendor === "arktype" ? own(schema, "json") : schema;
    const found = search(root, partsOf, [], new Set());
    return found === undefined ? undefined : found.join(".") || "result";
  } catch {
    return undefined; // the schema does not follow its vendor's layout
  }
}

interface Parts {
  readonly isLoose?: boolean;
  readonly parts?: Iterable<readonly [name: string | undefined, schema: unknown]>;
}

/** Maximum depth. `seen` ends the search of recursive schemas earlier. */
const deepest = 32;

function search(
  schema: unknown,
  partsOf: (schema: unknown) => Parts,
  path: string[],
  seen: Set<unknown>,
): string[] | undefined {
  if (schema === undefined || seen.has(schema) || seen.size > 10_000 || path.length > deepest)
    return undefined;
  seen.add(schema);
  const { isLoose = false, parts = [] } = partsOf(schema);
  if (isLoose) return path;
  for (const [name, part] of parts) {
    const found = search(part, partsOf, name === undefined ? path : [...path, name], seen);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Reads an own data property. Never calls an accessor, which may be application code. */
function own(of: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (from, name) => Object.getOwnPropertyDescriptor(Object(from), name)?.value,
    of,
  );
}

function named(members: unknown): [string, unknown][] {
  return Object.keys(Object(members)).map((name) => [name, own(members, name)]);
}

function listed(items: unknown, name?: string): [string | undefined, unknown][] {
  return Array.isArray(items) ? items.map((_, index) => [name, own(items, String(index))]) : [];
}

/** Properties with inner schemas, single or in a list, and the path segment to add. */
type Places = Readonly<Record<string, string | undefined>>;

function inner(of: unknown, places: Places): [string | undefined, unknown][] {
  return Object.entries(places).flatMap(([property, name]) => {
    const value = own(of, property);
    return Array.isArray(value) ? listed(value, name) : [[name, value]];
  });
}

const zodPlaces: ReadonlyMap<unknown, Places> = new Map<unknown, Places>([
  ["array", { element: "*" }],
  ["tuple", { items: "*", rest: "*" }],
  ["record", { valueType: "*" }],
  ["map", { valueType: "*" }],
  ["set", { valueType: "*" }],
  ["union", { options: undefined }],
  ["intersection", { left: undefined, right: undefined }],
  ["pipe", { out: undefined }],
]);

/** Reads zod 4 and zod/mini. Of zod 3, only the outermost object: functions hide its members. */
function zodParts(schema: unknown): Parts {
  const def = own(schema, "_zod", "def");
  if (def === undefined) {
    const old = own(schema, "_def");
    if (own(old, "typeName") !== "ZodObject") return {};
    return {
      isLoose:
        own(old, "unknownKeys") === "passthrough" ||
        own(old, "catchall", "_def", "typeName") !== "ZodNever",
    };
  }
  const type = own(def, "type");
  if (type !== "object")
    return { parts: inner(def, zodPlaces.get(type) ?? { innerType: undefined }) };
  const catchall = own(def, "catchall", "_zod", "def", "type");
  // zod resolves a shape on first use, and keeps the original in `raw` of its getter.
  const shape = own(def, "shape") ?? own(Object.getOwnPropertyDescriptor(def, "shape")?.get, "raw");
  return { isLoose: catchall !== undefined && catchall !== "never", parts: named(shape) };
}

const valibotPlaces: Places = {
  items: "*",
  options: undefined,
  wrapped: undefined,
  item: "*",
  value: "*",
  rest: "*",
};

function valibotParts(schema: unknown): Parts {
  const pipe = own(schema, "pipe");
  if (Array.isArray(pipe)) {
    const last = pipe.findLastIndex((item) => own(item, "kind") === "schema");
    const isTransform = (item: unknown) => String(own(item, "type")).endsWith("transform");
    if (pipe.slice(last).some(isTransform)) return {};
    // The last schema of the pipe determines the output. The first item is this schema itself.
    if (last > 0) return { parts: [[undefined, pipe[last]]] };
  }
  const type = own(schema, "type");
  const isLoose =
    type === "loose_object" ||
    (type === "object_with_rest" && own(schema, "rest", "type") !== "never");
  return { isLoose, parts: [...named(own(schema, "entries")), ...inner(schema, valibotPlaces)] };
}

/** Reads the JSON form of a type. One with an index signature is a record, which is not loose. */
function arktypeParts(json: unknown): Parts {
  if (Array.isArray(json)) return { parts: listed(json) };
  const morphs = own(json, "morphs");
  if (Array.isArray(morphs))
    return { parts: [[undefined, own(morphs, String(morphs.length - 1))]] };
  const properties = [...listed(own(json, "required")), ...listed(own(json, "optional"))];
  const index = listed(own(json, "index"));
  const sequence = own(json, "sequence");
  return {
    isLoose: properties.length > 0 && index.length === 0 && own(json, "undeclared") === undefined,
    parts: [
      ...properties.map(
        ([, property]) => [String(own(property, "key")), own(property, "value")] as const,
      ),
      ...index.map(([, signature]) => ["*", own(signature, "value")] as const),
      // If all items have the same type, `sequence` is that type.
      ...["prefix", "optionals", "postfix"].flatMap((name) => listed(own(sequence, name), "*")),
      ["*", own(sequence, "variadic") ?? sequence],
    ],
  };
}

const vendors: ReadonlyMap<string, (schema: unknown) => Parts> = new Map([
  ["zod", zodParts],
  ["valibot", valibotParts],
  ["arktype", arktypeParts],
]);
