import { isObject, type JsonSchema, mapParts, partsOf } from "./schema.ts";

/**
 * Opens closed sides of intersections. zod rejects a member only if no side declares it, but in
 * JSON Schema a closed side rejects the members of the other sides. Each closed definition gets an
 * open counterpart.
 */
export function openIntersections(root: JsonSchema): JsonSchema {
  const definitions = isObject(root["$defs"]) ? root["$defs"] : {};
  const open = new Map<string, JsonSchema>();
  const isClosed = (part: JsonSchema, way: readonly string[] = []): boolean => {
    const name = referenceOf(part);
    const definition = name !== undefined && !way.includes(name) ? definitions[name] : undefined;
    if (name !== undefined && isObject(definition)) return isClosed(definition, [...way, name]);
    if (part["additionalProperties"] === false) return true;
    return combinations.some((word) => partsOf(part, word).some((one) => isClosed(one, way)));
  };
  const opened = (part: JsonSchema): JsonSchema => {
    if (!isClosed(part)) return part;
    const name = referenceOf(part);
    if (name !== undefined) return { ...part, $ref: `${place}${openName(name)}` };
    const { additionalProperties, ...rest } = part;
    const own = additionalProperties === false ? rest : part;
    return mapParts(own, (one, [word]) =>
      combinations.includes(String(word)) ? opened(one) : one,
    );
  };
  const openName = (name: string): string => {
    const wanted = `${name}.open`;
    if (!open.has(wanted)) {
      open.set(wanted, {}); // the definition may refer to itself
      // Safe cast: only existing definitions can be closed.
      open.set(wanted, said(opened(definitions[name] as JsonSchema)));
    }
    return wanted;
  };
  const said = (given: JsonSchema): JsonSchema => {
    const sides = partsOf(given, "allOf");
    if (!sides.some((side) => isClosed(side))) return mapParts(given, said);
    const schema = { ...given, allOf: sides.map(opened) };
    return mapParts(
      sides.every((side) => isClosed(side)) ? { ...schema, unevaluatedProperties: false } : schema,
      said,
    );
  };
  const schema = said(root);
  return open.size === 0
    ? schema
    : { ...schema, $defs: { ...Object(schema["$defs"]), ...Object.fromEntries(open) } };
}

const place = "#/$defs/";
const combinations = ["allOf", "anyOf", "oneOf"];

function referenceOf({ $ref }: JsonSchema): string | undefined {
  return typeof $ref === "string" && $ref.startsWith(place) ? $ref.slice(place.length) : undefined;
}
