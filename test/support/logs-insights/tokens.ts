export type Token =
  | { readonly kind: "word" | "symbol"; readonly text: string }
  | { readonly kind: "text" | "quoted"; readonly value: string }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "pattern"; readonly value: RegExp };

const forms: readonly (readonly [RegExp, (matched: RegExpExecArray) => Token])[] = [
  [/"([^"\\\n]*)"/y, ([, value = ""]) => ({ kind: "text", value })],
  [/`([^`\n]+)`/y, ([, value = ""]) => ({ kind: "quoted", value })],
  // A pattern only follows `like`, so that it cannot be taken for a division.
  [/(?<=\blike )\/((?:[^/\\\n]|\\.)+)\//y, ([, source = ""]) => patternOf(source)],
  [/\d+(?:\.\d+)?(?![\w.])/y, ([value]) => ({ kind: "number", value: Number(value) })],
  [/@?[A-Za-z_]\w*(?:\.\w+)*/y, ([text]) => ({ kind: "word", text })],
  [/!=|<=|>=|[=<>()[\],|*]/y, ([text]) => ({ kind: "symbol", text })],
];

/** @throws Error at the first character that starts none of the known forms. */
export function tokensOf(query: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < query.length) {
    if (/\s/.test(query.charAt(at))) {
      at += 1;
      continue;
    }
    const [length, token] = tokenAt(query, at);
    tokens.push(token);
    at += length;
  }
  return tokens;
}

function tokenAt(query: string, at: number): readonly [length: number, Token] {
  for (const [form, make] of forms) {
    form.lastIndex = at;
    const matched = form.exec(query);
    if (matched !== null) return [matched[0].length, make(matched)];
  }
  throw new Error(`unknown syntax at ${JSON.stringify(query.slice(at, at + 20))}`);
}

function patternOf(source: string): Token {
  return { kind: "pattern", value: new RegExp(source) };
}
