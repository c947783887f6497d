// The table of `ctx`: each member, the handlers that have it, and its comment.
import { splitComment } from "./members.mjs";
import { cellOf, codeCell, tableOf } from "./tables.mjs";

/** The types of `ctx`, with the words for the handlers that get it. */
const kinds = {
  QueryContext: "queries",
  PipelineContext: "writes",
  HookContext: "`before`",
  AfterHookContext: "`after`",
};

/** Members whose own members are rows, by the names of their types. */
const opened = /^(?:\w+Accessor|RequestView|Trace)$/;

/** @throws Error that lists the members without a comment. */
export function contextTable({ ts, checker, entries }) {
  const [{ names }] = entries;
  const members = new Map();
  for (const [name, words] of Object.entries(kinds))
    for (const member of checker.getPropertiesOfType(
      checker.getDeclaredTypeOfSymbol(names.get(name)),
    )) {
      const { words: others = [], symbol } = members.get(member.name) ?? {};
      // The first wins, because the comment of `enqueue` in `after` only describes the difference.
      members.set(member.name, { symbol: symbol ?? member, words: [...others, words] });
    }
  const missing = [];
  const rows = [...members.values()]
    .sort((one, other) => (one.symbol.name < other.symbol.name ? -1 : 1))
    .flatMap(({ symbol, words }) => rowsOf("ctx.", symbol, placesOf(words)));
  if (missing.length > 0)
    throw new Error(`members of ctx without a comment: ${missing.join(", ")}`);
  return tableOf(["Member", "In", ""], rows);

  function rowsOf(prefix, symbol, places) {
    const node = symbol.declarations[0].type;
    const inner = opened.test(node?.getText() ?? "")
      ? checker.getPropertiesOfType(checker.getTypeFromTypeNode(node))
      : [];
    const name = `${prefix}${symbol.name}`;
    const comment = ts.displayPartsToString(symbol.getDocumentationComment(checker));
    if (comment === "") missing.push(name);
    const { text } = splitComment(comment.split(/\n\s*\n/)[0]);
    return [
      [codeCell(`${name}${parametersOf(node)}`), places, cellOf(text)],
      ...inner.flatMap((member) => rowsOf(`${name}.`, member, places)),
    ];
  }

  function parametersOf(node) {
    if (node === undefined || !ts.isFunctionTypeNode(node)) return "";
    const names = node.parameters.map(
      ({ name, questionToken }) => `${name.getText()}${questionToken === undefined ? "" : "?"}`,
    );
    return `(${names.join(", ")})`;
  }
}

function placesOf(words) {
  return words.length === Object.keys(kinds).length ? "all" : words.join(", ");
}
