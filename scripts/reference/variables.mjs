// The environment variables that the sources read, found by the type of the object that they are read from.

/** Objects that hold variables, by the names and the types that the sources give them. */
const holders = /(?:^|\.)(?:env|variables)$/;
const holderTypes = ["Variables", "ProcessEnv"];

/**
 * @returns `{ names, unnamed }`: each variable with the first file that reads it, and the places whose variable the types do
 * not name.
 */
export function readVariables({ ts, checker, files }) {
  const names = new Map();
  const unnamed = [];
  for (const { path, file } of files) visit(file, path);
  return { names, unnamed };

  function visit(node, path) {
    if (ts.isElementAccessExpression(node) && holdsVariables(node.expression))
      add(node.argumentExpression, path);
    else if (ts.isPropertyAccessExpression(node) && holdsVariables(node.expression))
      note(node.name.text, path);
    else if (ts.isObjectBindingPattern(node) && takesVariablesApart(node))
      for (const { propertyName, name, dotDotDotToken } of node.elements)
        if (dotDotDotToken === undefined) note((propertyName ?? name).getText(), path);
    ts.forEachChild(node, (child) => visit(child, path));
  }

  function holdsVariables(node) {
    const type = checker.getTypeAtLocation(node);
    return type.getStringIndexType() !== undefined && holders.test(node.getText());
  }

  function takesVariablesApart({ parent: { type, initializer } }) {
    if (type !== undefined) return holderTypes.some((name) => type.getText().endsWith(name));
    return initializer !== undefined && holdsVariables(initializer);
  }

  function add(node, path) {
    const type = checker.getTypeAtLocation(node);
    const types = type.isUnion() ? type.types : [type];
    for (const one of types) {
      if (one.isStringLiteral()) note(one.value, path);
      else if (one.flags & ts.TypeFlags.TemplateLiteral) note(`${one.texts[0]}<NAME>`, path);
      else unnamed.push(`${path}: ${node.getText()}`);
    }
  }

  function note(name, path) {
    if (!names.has(name)) names.set(name, path);
  }
}
