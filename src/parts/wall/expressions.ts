/** An attribute that an update changes, as its expression names it: `owner` or `#owner`. */
export interface Assignment {
  readonly name: string;
  readonly kind: "set" | "remove" | "add" | "delete";
  /** Whether the path goes on below the attribute. */
  readonly isNested: boolean;
  /** The placeholder that it is set to, where the action is `SET name = :value` and nothing else. */
  readonly value: string | undefined;
}

/** A condition of a query on one attribute. */
export interface KeyCondition {
  readonly name: string;
  /** The placeholder that it equals; `undefined` for any other comparison. */
  readonly value: string | undefined;
}

/** Reads expressions; each text once. */
export interface Expressions {
  readonly update: typeof parseUpdate;
  readonly keyCondition: typeof parseKeyCondition;
}

/** Creates the {@link Expressions} of a server. */
export function createExpressions(): Expressions {
  return { update: remembered(parseUpdate), keyCondition: remembered(parseKeyCondition) };
}

/** How many expressions are remembered; an application has some hundreds. */
const maxRemembered = 1_000;

/** Parses a text once. Texts that handlers make anew each time push out the others. */
function remembered<Parsed>(parse: (text: string) => Parsed): (text: string) => Parsed {
  const known = new Map<string, Parsed>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const parsed = parse(text);
    if (known.size >= maxRemembered) known.clear();
    known.set(text, parsed);
    return parsed;
  };
}

/** DynamoDB's limit for an expression. */
const maxLength = 4_096;

/** Reads an `UpdateExpression`; `undefined` where it cannot be read to its end. */
export function parseUpdate(text: string): readonly Assignment[] | undefined {
  const tokens = tokensOf(text);
  return tokens === undefined ? undefined : readUpdate(tokens);
}

/** Reads a `KeyConditionExpression`: conditions that all hold. `undefined` where it cannot be read to its end. */
export function parseKeyCondition(text: string): readonly KeyCondition[] | undefined {
  const tokens = tokensOf(text);
  if (tokens === undefined) return undefined;
  const conditions: KeyCondition[] = [];
  return readAll(tokens, 0, conditions) === tokens.length ? conditions : undefined;
}

// Names and placeholders are those that DynamoDB takes. An expression with anything else is refused here, as it is there.
const token =
  /[ \t\r\n\f]*(?:([A-Za-z_][A-Za-z0-9_]*|[#:][A-Za-z0-9_]+|[0-9]+|<=|>=|<>|[-=+,().[\]<>])|$)/y;

function tokensOf(text: string): readonly string[] | undefined {
  if (text.length > maxLength) return undefined;
  const tokens: string[] = [];
  token.lastIndex = 0;
  for (;;) {
    const match = token.exec(text);
    if (match === null) return undefined;
    const [, found] = match;
    if (found === undefined) return tokens;
    tokens.push(found);
  }
}

const kinds: Readonly<Record<string, Assignment["kind"]>> = {
  SET: "set",
  REMOVE: "remove",
  ADD: "add",
  DELETE: "delete",
};

/**
 * Every target of an action follows a keyword, or a comma outside of brackets. What an attribute is set to is read no further than
 * to where the next of these is.
 */
function readUpdate(tokens: readonly string[]): readonly Assignment[] | undefined {
  const found: Assignment[] = [];
  let at = 0;
  while (at < tokens.length) {
    const kind = kindOf(tokens[at]);
    if (kind === undefined) return undefined;
    do {
      const name = tokens[++at];
      if (!isName(name)) return undefined;
      const begin = endOfPath(tokens, at);
      const end = endOfAction(tokens, begin);
      if (end === undefined) return undefined;
      const rest = tokens.slice(begin, end);
      const isSound = {
        set: rest[0] === "=" && rest.length > 1,
        remove: rest.length === 0,
        add: isOneValue(rest),
        delete: isOneValue(rest),
      };
      if (!isSound[kind]) return undefined;
      const value = kind === "set" && isOneValue(rest.slice(1)) ? rest[1] : undefined;
      found.push({ name, kind, isNested: begin > at + 1, value });
      at = end;
    } while (tokens[at] === ",");
  }
  return found.length === 0 ? undefined : found;
}

function kindOf(word: string | undefined): Assignment["kind"] | undefined {
  const upper = String(word).toUpperCase();
  return Object.hasOwn(kinds, upper) ? kinds[upper] : undefined;
}

function isOneValue(tokens: readonly string[]): boolean {
  return tokens.length === 1 && isPlaceholder(tokens[0]);
}

/** Where a path that begins at `at` ends: behind its last `.name` or `[0]`. */
function endOfPath(tokens: readonly string[], at: number): number {
  let end = at + 1;
  for (;;) {
    if (tokens[end] === "." && isName(tokens[end + 1])) end += 2;
    else if (
      tokens[end] === "[" &&
      /^[0-9]+$/.test(String(tokens[end + 1])) &&
      tokens[end + 2] === "]"
    )
      end += 3;
    else return end;
  }
}

/** Where an action ends: at a comma or a keyword outside of parentheses, or with the text. */
function endOfAction(tokens: readonly string[], begin: number): number | undefined {
  let depth = 0;
  for (let at = begin; at < tokens.length; at++) {
    const word = tokens[at];
    if (word === "(") depth += 1;
    else if (word === ")") depth -= 1;
    else if (depth === 0 && (word === "," || kindOf(word) !== undefined)) return at;
    if (depth < 0) return undefined;
  }
  return depth === 0 ? tokens.length : undefined;
}

/** Reads conditions joined by AND, and returns where they end; -1 where they are none. */
function readAll(tokens: readonly string[], begin: number, conditions: KeyCondition[]): number {
  let at = readOne(tokens, begin, conditions);
  while (at !== -1 && tokens[at]?.toUpperCase() === "AND") at = readOne(tokens, at + 1, conditions);
  return at;
}

function readOne(tokens: readonly string[], at: number, conditions: KeyCondition[]): number {
  const [first, second, third, fourth, fifth, sixth] = tokens.slice(at, at + 6);
  if (first === "(") {
    const end = readAll(tokens, at + 1, conditions);
    return end !== -1 && tokens[end] === ")" ? end + 1 : -1;
  }
  if (first === "begins_with" && second === "(") {
    if (!isName(third) || fourth !== "," || !isPlaceholder(fifth) || sixth !== ")") return -1;
    conditions.push({ name: third, value: undefined });
    return at + 6;
  }
  if (isName(first) && second?.toUpperCase() === "BETWEEN") {
    if (!isPlaceholder(third) || fourth?.toUpperCase() !== "AND" || !isPlaceholder(fifth))
      return -1;
    conditions.push({ name: first, value: undefined });
    return at + 5;
  }
  if (!["=", "<", "<=", ">", ">="].includes(second ?? "")) return -1;
  const [name, value] = isPlaceholder(first) ? [third, first] : [first, third];
  if (!isName(name) || !isPlaceholder(value)) return -1;
  conditions.push({ name, value: second === "=" ? value : undefined });
  return at + 3;
}

function isName(word: string | undefined): word is string {
  return word !== undefined && /^[#A-Za-z_]/.test(word);
}

function isPlaceholder(word: string | undefined): word is string {
  return word?.startsWith(":") === true;
}
