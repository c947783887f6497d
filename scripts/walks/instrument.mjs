import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { parseAst } from "rolldown/parseAst";

/** Folders of dist/ around a walk, which do not count. */
const leftOut = ["embedded/", "tools/testing/"];

/**
 * Instruments each function of a dist/, so that it calls `globalThis.entered` with its index in the returned list, which has the
 * file and the name of each.
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

/** The source of a module with instrumented functions; `number` gives each its index. */
export function instrumentText(text, number) {
  const inserts = [];
  visit(parseAst(text), (node, name) => {
    // Optional, because other processes load the same files without a listener.
    const call = `globalThis.entered?.(${number(name ?? `line ${lineOf(text, node.start)}`)})`;
    const { body } = node;
    if (body.type === "BlockStatement") {
      // Even before `super()`, because it does not use `this`.
      inserts.push([body.start + 1, `${call};`]);
    } else {
      inserts.push([body.start, `(${call},`], [body.end, ")"]);
    }
  });
  let [result, at] = ["", 0];
  // Insertions at one position keep their order: outer functions are visited first.
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

/** The name of the function at this position. */
function nameOf(parent, member) {
  const named = { init: parent.id, value: parent.key, right: parent.left }[member];
  return named?.name ?? named?.value ?? named?.property?.name;
}

function lineOf(text, at) {
  return text.slice(0, at).split("\n").length;
}
