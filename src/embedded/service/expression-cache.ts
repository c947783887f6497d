/** Parser of dynalite, generated from a grammar of expressions. */
export interface ExpressionParser {
  parse(text: string, options: { readonly context: ExpressionContext }): unknown;
}

export interface ExpressionContext {
  readonly attrNames?: Readonly<Record<string, string>>;
  readonly attrVals?: Values;
  /** The parser deletes the names and values that an expression uses. */
  readonly unusedAttrNames: Record<string, true>;
  readonly unusedAttrVals: Record<string, true>;
}

type Values = Readonly<Record<string, object>>;

interface Parsed {
  /** As parsed, with a {@link Slot} in place of each value. */
  readonly tree: unknown;
  readonly usedNames: readonly string[];
  readonly usedValues: readonly string[];
}

/** Place of a value in a parsed expression. */
class Slot {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

const mostExpressions = 500;
const mostCharacters = 10_000;
/** Operations for which the parser looks at values, and not only at their types. */
const readsValues = /between|attribute_type/i;
const isCaching = Symbol.for("keelson.expression-cache");

/**
 * Lets a parser remember the expressions that it has parsed: without memory, it takes most of the
 * time of a conditional write. Its answers stay the same.
 */
export function cacheExpressions(parser: ExpressionParser): void {
  if (isCaching in parser.parse) return; // of another stack in this process
  const { parse } = parser;
  const cache = new Map<string, Parsed>();
  const cached: typeof parse = (text, options) => {
    const { context } = options;
    const key = keyOf(text, context);
    if (key.length > mostCharacters || readsValues.test(text)) return parse(text, options);
    const known = cache.get(key);
    if (known !== undefined) return answer(known, context);
    const parsed = parsedBy(parse, text, context);
    if (parsed === undefined) return parse(text, options);
    if (cache.size === mostExpressions) cache.clear();
    cache.set(key, parsed);
    return answer(parsed, context);
  };
  parser.parse = Object.assign(cached, { [isCaching]: true });
}

function keyOf(text: string, { attrNames, attrVals = {} }: ExpressionContext): string {
  const types = Object.entries(attrVals).map(([name, value]) => [name, ...Object.keys(value)]);
  return JSON.stringify([text, attrNames, types]);
}

/** Returns `undefined` for an invalid expression, whose error may quote a value. */
function parsedBy(
  parse: ExpressionParser["parse"],
  text: string,
  context: ExpressionContext,
): Parsed | undefined {
  const { attrNames = {}, attrVals = {} } = context;
  const [unusedAttrNames, unusedAttrVals] = [allOf(attrNames), allOf(attrVals)];
  let tree: unknown;
  try {
    tree = parse(text, { context: { ...context, unusedAttrNames, unusedAttrVals } });
  } catch {
    return undefined;
  }
  if (typeof tree === "string") return undefined;
  const slots = new Map(Object.entries(attrVals).map(([name, value]) => [value, new Slot(name)]));
  return {
    tree: copied(tree, (node) => slots.get(node)),
    usedNames: Object.keys(attrNames).filter((name) => !(name in unusedAttrNames)),
    usedValues: Object.keys(attrVals).filter((name) => !(name in unusedAttrVals)),
  };
}

function allOf(given: object): Record<string, true> {
  return Object.fromEntries(Object.keys(given).map((name) => [name, true]));
}

function answer(
  { tree, usedNames, usedValues }: Parsed,
  { attrVals = {}, unusedAttrNames, unusedAttrVals }: ExpressionContext,
): unknown {
  for (const name of usedNames) delete unusedAttrNames[name];
  for (const name of usedValues) delete unusedAttrVals[name];
  return copied(tree, (node) => (node instanceof Slot ? attrVals[node.name] : undefined));
}

/** Copies a tree, with another node in each place for which `replace` returns one. */
function copied(node: unknown, replace: (node: object) => unknown): unknown {
  if (typeof node !== "object" || node === null) return node;
  const other = replace(node);
  if (other !== undefined) return other;
  if (Array.isArray(node)) return node.map((part) => copied(part, replace));
  const copy: Record<string, unknown> = Object.create(Object.getPrototypeOf(node));
  for (const [name, part] of Object.entries(node)) copy[name] = copied(part, replace);
  return copy;
}
