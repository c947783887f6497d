import type { StandardSchemaV1 } from "@standard-schema/spec";

/**
 * Where a schema first lets through what it does not declare, as a dotted path, `result` for the whole; `undefined` where it
 * cannot be seen to. `any`, `unknown`, records and transforms are what their author asked for. It looks only at what a schema
 * has written down: what would have to be called to be known, such as a lazy schema, is not looked at. Never throws.
 */
export function looseAt(schema: StandardSchemaV1): string | undefined {
  try {
    const { vendor } = schema["~standard"];
    const partsOf = vendors.get(vendor);
    if (partsOf === undefined) return undefined;
    const found = search(
      vendor === "arktype" ? own(schema, "json") : schema,
      partsOf,
      [],
      new Set(),
    );
    return found === undefined ? undefined : found.join(".") || "result";
  } catch {
    return undefined; // a schema unlike those of its vendor
  }
}

/** What a schema is made of: whether it is loose itself, and the schemas in it, by what their path has of them. */
interface Parts {
  readonly isLoose?: boolean;
  readonly parts?: Iterable<readonly [name: string | undefined, schema: unknown]>;
}

/** Schemas that hold themselves end at what was seen; the path's length bounds the rest. */
const deepest = 32;

function search(
  schema: unknown,
  partsOf: (schema: unknown) => Parts,
  path: string[],
  seen: Set<unknown>,
): string[] | undefined {
  if (
    schema === null ||
    schema === undefined ||
    seen.has(schema) ||
    seen.size > 10_000 ||
    path.length > deepest
  )
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

/** The value of a member that is there: an accessor may be the application's code, and is not called. */
function own(of: unknown, name: string): unknown {
  if ((typeof of !== "object" && typeof of !== "function") || of === null) return undefined;
  return Object.getOwnPropertyDescriptor(of, name)?.value;
}

function named(members: unknown): [string, unknown][] {
  return typeof members === "object" && members !== null
    ? Object.keys(members).map((name) => [name, own(members, name)])
    : [];
}

function listed(items: unknown, name?: string): [string | undefined, unknown][] {
  return Array.isArray(items) ? items.map((_, index) => [name, own(items, String(index))]) : [];
}

/** Of zod 4 and zod/mini; of zod 3 the outermost object alone, since its members are behind functions. */
function zodParts(schema: unknown): Parts {
  const def = own(own(schema, "_zod"), "def");
  if (def === undefined) {
    const old = own(schema, "_def");
    if (own(old, "typeName") !== "ZodObject") return {};
    return {
      isLoose:
        own(old, "unknownKeys") === "passthrough" ||
        own(own(own(old, "catchall"), "_def"), "typeName") !== "ZodNever",
    };
  }
  switch (own(def, "type")) {
    case "object": {
      const catchall = own(own(own(own(def, "catchall"), "_zod"), "def"), "type");
      // zod reads a shape when it is first needed, and keeps the one that it was given beside its accessor.
      const shape =
        own(def, "shape") ?? own(Object.getOwnPropertyDescriptor(def, "shape")?.get, "raw");
      return { isLoose: catchall !== undefined && catchall !== "never", parts: named(shape) };
    }
    case "array":
      return { parts: [["*", own(def, "element")]] };
    case "tuple":
      return { parts: [...listed(own(def, "items"), "*"), ["*", own(def, "rest")]] };
    case "record":
    case "map":
    case "set":
      return { parts: [["*", own(def, "valueType")]] };
    case "union":
      return { parts: listed(own(def, "options")) };
    case "intersection":
      return { parts: listed([own(def, "left"), own(def, "right")]) };
    case "pipe":
      return { parts: [[undefined, own(def, "out")]] };
    default:
      return { parts: [[undefined, own(def, "innerType")]] };
  }
}

function valibotParts(schema: unknown): Parts {
  const pipe = own(schema, "pipe");
  if (Array.isArray(pipe)) {
    const last = pipe.findLastIndex((item) => own(item, "kind") === "schema");
    const isMadeAnew = pipe
      .slice(last)
      .some((item) => /transform$/.test(String(own(item, "type"))));
    if (isMadeAnew) return {};
    // The first is the schema itself, in which the pipe is written down.
    if (last > 0) return { parts: [[undefined, pipe[last]]] };
  }
  const type = own(schema, "type");
  const rest = own(schema, "rest");
  const isLoose =
    type === "loose_object" || (type === "object_with_rest" && own(rest, "type") !== "never");
  return {
    isLoose,
    parts: [
      ...named(own(schema, "entries")),
      ...listed(own(schema, "items"), "*"),
      ...listed(own(schema, "options")),
      [undefined, own(schema, "wrapped")],
      ["*", own(schema, "item")],
      ["*", own(schema, "value")],
      ["*", rest],
    ],
  };
}

/** Of the JSON that a type keeps of itself. What has an index signature is a record. */
function arktypeParts(json: unknown): Parts {
  if (Array.isArray(json)) return { parts: listed(json) };
  const morphs = own(json, "morphs");
  // What is piped into a type is what that leaves of it.
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
      // One of equal items is their type itself.
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
