import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { parseAst } from "rolldown/parseAst";

/** Folders of dist/ that stand around a walk, not on it. */
const leftOut = ["embedded/", "tools/testing/"];

/**
 * Lets each function of a dist/ say that it is entered: it calls `globalThis.entered` with its place in the returned list,
 * which has the file and the name of each.
 */
export function instrument(folder) {
  const functions = [];
  const files = globSync("**/*.js", { cwd: folder }).map((file) => file.split(sep).join("/"));
  for (const file of files
    .filter((file) => !leftOut.some((folder) => file.startsWith(folder)))
    .sort()) {
    const path = join(folder, file);
    writeFileSync(
      path,
      instrumentText(readFileSync(path, "utf8"), (name) => functions.push({ file, name }) - 1),
    );
  }
  return functions;
}

/** The text of a module whose functions say that they are entered; `number` gives each its number. */
export function instrumentText(text, number) {
  const inserts = [];
  visit(parseAst(text), (node, name) => {
    // Optional: other processes load the same files, and nobody listens there.
    const call = `globalThis.entered?.(${number(name ?? `line ${lineOf(text, node.start)}`)})`;
    const { body } = node;
    if (body.type === "BlockStatement") {
      // Before `super()` as well: it asks nothing of `this`.
      inserts.push([body.start + 1, `${call};`]);
    } else {
      inserts.push([body.start, `(${call},`], [body.end, ")"]);
    }
  });
  let [result, at] = ["", 0];
  // Those at the same place stay in their order: what begins further out is visited first.
  for (const [place, insert] of inserts.sort(([one], [other]) => one - other)) {
    result += text.slice(at, place) + insert;
    at = place;
  }
  return result + text.slice(at);
}

const isFunction = ({ type }) =>
  /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type);

function visit(node, found, name) {
  if (isFunction(node)) found(node, node.id?.name ?? name);
  for (const [member, child] of Object.entries(node)) {
    for (const one of Array.isArray(child) ? child : [child]) {
      if (typeof one?.type === "string") visit(one, found, nameOf(node, member));
    }
  }
}

/** What a function is called that stands at this place. */
function nameOf(parent, member) {
  const named = { init: parent.id, value: parent.key, right: parent.left }[member];
  return named?.name ?? named?.value ?? named?.property?.name;
}

function lineOf(text, at) {
  return text.slice(0, at).split("\n").length;
}
