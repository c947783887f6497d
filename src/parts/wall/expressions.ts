/** Attribute that an update changes, named as in the expression: `owner` or `#owner`. */
interface Assignment {
  readonly name: string;
  readonly kind: "set" | "remove" | "add" | "delete";
  /** The path continues below the attribute, as in `owner.name`. */
  readonly isNested: boolean;
  /** `:value`, if the assignment is exactly `SET name = :value`. */
  readonly value: string | undefined;
}

interface KeyCondition {
  readonly name: string;
  /** `:value`, if the condition is `name = :value`. */
  readonly value: string | undefined;
}

export type Expressions = ReturnType<typeof createExpressions>;

export function createExpressions() {
  return { update: remembered(parseUpdate), keyCondition: remembered(parseKeyCondition) };
}

/** An application has a few hundred expressions. */
const maxRemembered = 1_000;

/** A full cache is cleared, because expressions may be dynamic. */
function remembered<Parsed>(parse: (text: string) => Parsed): (text: string) => Parsed {
  const known = new Map<string, Parsed>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const parsed = parse(text);
    if (parsed === undefined) return parsed; // it may have any length
    if (known.size >= maxRemembered) known.clear();
    known.set(text, parsed);
    return parsed;
  };
}

/** DynamoDB's limit for an expression. */
const maxLength = 4_096;

/** Parses an UpdateExpression; `undefined` if it cannot be parsed completely. */
export function parseUpdate(text: string): readonly Assignment[] | undefined {
  const tokens = tokensOf(text);
  return tokens === undefined ? undefined : readUpdate(tokens);
}

/** Parses a KeyConditionExpression; `undefined` if it cannot be parsed completely. */
export function parseKeyCondition(text: string): readonly KeyCondition[] | undefined {
  const tokens = tokensOf(text);
  if (tokens === undefined) return undefined;
  const conditions: KeyCondition[] = [];
  return readAll(tokens, 0, conditions) === tokens.length ? conditions : undefined;
}

// One token, with the names and placeholders that DynamoDB accepts.
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

/** Each assignment follows a keyword, or a comma outside parentheses. */
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

/** Returns the index after the path that starts at `at`, such as `owner.names[0]`. */
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
