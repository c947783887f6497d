// The codes of the errors that the sources throw, with their statuses: read from the code that creates errors, not from a list.

/**
 * The codes of typed errors: arguments of `new` and `super`, and of `coded`, which passes them on.
 *
 * @returns `codes`: `[{ code, statuses }]`, by status; `unnamed`: the codes that the types do not name, with their files,
 *   because a reader could not find their sections.
 */
export function errorCodes({ ts, checker, files }) {
  const statusOf = frameworkStatuses();
  const found = new Map();
  const unnamed = [];
  for (const { path, file } of files) {
    if (/^src\/(?:tools|embedded|clients)\//.test(path)) continue; // they do not answer requests
    visit(file, (node) => read(node, path));
  }
  const codes = [...found]
    .map(([code, statuses]) => ({ code, statuses: [...statuses].sort() }))
    .sort((one, other) => (order(one) < order(other) ? -1 : 1));
  return { codes, unnamed };

  function order({ code, statuses: [status = "999"] }) {
    return `${status} ${code}`;
  }

  function visit(node, work) {
    work(node);
    ts.forEachChild(node, (child) => visit(child, work));
  }

  /** The table `errorCodes`: code to status. */
  function frameworkStatuses() {
    const { file } = files.find(({ path }) => path === "src/base/errors/error-codes.ts");
    const table = new Map();
    visit(file, (node) => {
      if (!ts.isVariableDeclaration(node) || node.name.getText() !== "errorCodes") return;
      const [{ properties }] = node.initializer.arguments;
      for (const { name, initializer } of properties)
        table.set(name.getText(), initializer.getText());
    });
    return table;
  }

  function read(node, path) {
    const className = errorClassOf(node);
    if (className === "FrameworkError" || className === "ConflictError") {
      for (const code of codesOf(node.arguments[0], path)) add(code, statusOf.get(code) ?? "409");
    } else if (className === "PipelineError") readPipelineError(node, path);
    else if (ts.isCallExpression(node) && node.expression.getText() === "coded")
      for (const code of codesOf(node.arguments[0], path)) add(code, statusOf.get(code) ?? "409");
    else if (ts.isBinaryExpression(node) && /^details\.code$/.test(node.left.getText()))
      add(node.right.text, "400 to 599"); // the code of a `PipelineError` without one
  }

  /** The class that a call constructs: by `new`, or by the `super` of a class that extends it. */
  function errorClassOf(node) {
    if (ts.isNewExpression(node)) return node.expression.getText();
    if (!ts.isCallExpression(node) || node.expression.kind !== ts.SyntaxKind.SuperKeyword)
      return undefined;
    const owner = ts.findAncestor(node, ts.isClassDeclaration);
    const isSpread = node.arguments.some((argument) => ts.isSpreadElement(argument));
    return isSpread ? undefined : owner?.heritageClauses?.[0]?.types[0]?.expression.getText();
  }

  function readPipelineError({ arguments: [, status, details] }, path) {
    if (details === undefined || !ts.isObjectLiteralExpression(details)) return;
    const code = details.properties.find(({ name }) => name?.getText() === "code");
    if (code?.initializer === undefined) return; // `{ ...details, code }` of `FrameworkError`
    const literals = literalsOf(checker.getTypeAtLocation(status));
    for (const name of codesOf(code.initializer, path))
      add(name, ...(literals.length > 0 ? literals : ["another"]));
  }

  function codesOf(node, path) {
    const type = checker.getTypeAtLocation(node);
    const codes = literalsOf(type);
    const isOwn = path === "src/base/errors/errors.ts"; // its classes pass their arguments on
    if (codes.length === 0 && !isOwn)
      unnamed.push(`${path}: the code ${node.getText()} is not a literal`);
    return codes;
  }

  function literalsOf(type) {
    const types = type.isUnion() ? type.types : [type];
    return types.flatMap((one) =>
      one.isStringLiteral() || one.isNumberLiteral() ? [String(one.value)] : [],
    );
  }

  function add(code, ...statuses) {
    const known = found.get(code) ?? new Set();
    for (const status of statuses) known.add(status);
    found.set(code, known);
  }
}
