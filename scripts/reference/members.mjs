// The members of a type as rows of a table: name, type in short form, default, and doc comment.

/** Longest type that a cell shows; a longer one is shown by its kind. */
const longestType = 72;

/**
 * Reads the members of types.
 *
 * @returns `membersOf(symbol)`: rows `{ name, type, byDefault, text }` of a type's members. Members of nested option objects
 * have a path: `cache.ttlMs`. `nested` collects the names of the types that became such rows, `missing` the members
 * without a comment.
 */
export function memberReader({ ts, checker }) {
  const nested = new Set();
  const missing = [];
  return { nested, missing, membersOf: (symbol) => rowsOf(symbol.name, declared(symbol), "") };

  function declared(symbol) {
    return checker.getDeclaredTypeOfSymbol(symbol);
  }

  function rowsOf(owner, type, prefix) {
    return checker
      .getPropertiesOfType(type)
      .filter((member) => !member.name.startsWith("__"))
      .flatMap((member) => memberRows(owner, member, prefix));
  }

  function memberRows(owner, member, prefix) {
    const path = `${prefix}${member.name}`;
    const node = typeNodeOf(member);
    const parts = node === undefined ? [] : objectsIn(node);
    const comment = commentOf(member) || parts.map(commentOfType).find((text) => text !== "");
    if (comment === undefined && parts.length === 0) missing.push(`${owner}: ${path}`);
    const { text, byDefault } = splitComment(comment ?? "");
    const isOptional = (member.flags & ts.SymbolFlags.Optional) !== 0;
    const row = {
      name: path,
      type: node === undefined ? "" : shortType(node),
      byDefault: isOptional ? byDefault : byDefault || "required",
      text,
    };
    return [row, ...parts.flatMap((part) => rowsOf(owner, part, `${path}.`))];
  }

  function typeNodeOf({ declarations = [] }) {
    // Of a union, whose other types may refuse the member.
    const declaration =
      declarations.find(({ type }) => type?.kind !== ts.SyntaxKind.NeverKeyword) ?? declarations[0];
    if (declaration === undefined) return undefined;
    return ts.isMethodSignature(declaration) || ts.isMethodDeclaration(declaration)
      ? declaration
      : declaration.type;
  }

  /** The option objects that a member takes: literals, and interfaces that are options by name. */
  function objectsIn(node) {
    if (ts.isParenthesizedTypeNode(node)) return objectsIn(node.type);
    if (ts.isUnionTypeNode(node)) return node.types.flatMap(objectsIn);
    if (ts.isIntersectionTypeNode(node)) {
      for (const part of node.types) objectsIn(part); // notes their names
      return [checker.getTypeFromTypeNode(node)];
    }
    if (ts.isTypeLiteralNode(node)) return [checker.getTypeFromTypeNode(node)];
    if (!ts.isTypeReferenceNode(node) || !isOptionName(node.typeName.getText())) return [];
    nested.add(node.typeName.getText());
    return [checker.getTypeFromTypeNode(node)];
  }

  function commentOfType({ symbol, aliasSymbol }) {
    return commentOf(aliasSymbol ?? symbol);
  }

  function commentOf(symbol) {
    return symbol === undefined
      ? ""
      : ts.displayPartsToString(symbol.getDocumentationComment(checker));
  }

  function shortType(node) {
    const literals = literalsOf(node) ?? [];
    if (literals.length > 1 && literals.join(" | ").length <= longestType)
      return literals.join(" | ");
    const text = typeText(node);
    return text.length <= longestType ? text : text.includes("=>") ? "function" : "object";
  }

  /** `"a"`, `"b"` of a union, in the order of the source, because the checker's order may change. */
  function literalsOf(node) {
    if (ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal)) return [node.getText()];
    if (ts.isParenthesizedTypeNode(node)) return literalsOf(node.type);
    if (ts.isUnionTypeNode(node)) {
      const parts = node.types.map(literalsOf);
      return parts.includes(undefined) ? undefined : parts.flat();
    }
    if (!ts.isTypeReferenceNode(node)) return undefined;
    const symbol = checker.getSymbolAtLocation(node.typeName);
    const isAlias = ((symbol?.flags ?? 0) & ts.SymbolFlags.Alias) !== 0;
    const [declaration] = (isAlias ? checker.getAliasedSymbol(symbol) : symbol)?.declarations ?? [];
    return declaration !== undefined && ts.isTypeAliasDeclaration(declaration)
      ? literalsOf(declaration.type)
      : undefined;
  }

  function typeText(node) {
    if (ts.isFunctionTypeNode(node) || ts.isMethodSignature(node) || ts.isMethodDeclaration(node)) {
      const names = node.parameters.map(({ name, questionToken, dotDotDotToken }) =>
        [dotDotDotToken && "...", name.getText(), questionToken && "?"].filter(Boolean).join(""),
      );
      return `(${names.join(", ")}) => ${resultText(node.type)}`;
    }
    if (ts.isConditionalTypeNode(node)) return "";
    if (ts.isParenthesizedTypeNode(node)) return typeText(node.type);
    if (ts.isTypeLiteralNode(node)) return "object";
    if (ts.isIntersectionTypeNode(node)) return "object";
    if (ts.isUnionTypeNode(node)) return unionText(node.types);
    if (ts.isTypeOperatorNode(node)) return typeText(node.type);
    if (ts.isArrayTypeNode(node)) return `${typeText(node.elementType)}[]`;
    if (ts.isTypeReferenceNode(node)) return referenceText(node);
    return node.getText().replaceAll(/\s+/g, " ");
  }

  /** The result of a function, unless that needs one of keelson's types. */
  function resultText(node) {
    const text = node === undefined ? "void" : typeText(node);
    return /^(?:(?:string|number|boolean|void|unknown|undefined|Promise<void>)(?: \| )?)+$/.test(
      text,
    )
      ? text
      : "…";
  }

  function unionText(nodes) {
    const given = nodes.filter(({ kind }) => kind !== ts.SyntaxKind.UndefinedKeyword);
    const texts = given.map((node) => {
      const text = typeText(node);
      return text.includes("=>") && given.length > 1 ? `(${text})` : text;
    });
    return [...new Set(texts)].filter((text) => text !== "").join(" | ");
  }

  function referenceText({ typeName, typeArguments = [] }) {
    const name = typeName.getText();
    const [declaration] = checker.getSymbolAtLocation(typeName)?.declarations ?? [];
    if (declaration !== undefined && ts.isTypeParameterDeclaration(declaration))
      return declaration.constraint === undefined ? "unknown" : typeText(declaration.constraint);
    if (/(?:Input|Schema)$/.test(name)) return "StandardSchemaV1"; // any library's schema
    if (name === "Pick" || name === "Omit") return "object";
    if (name === "Readonly" || name === "NoInfer" || name === "Awaitable")
      return typeText(typeArguments[0]);
    return name === "Promise" || name === "Record"
      ? `${name}<${typeArguments.map(typeText).join(", ")}>`
      : name;
  }
}

/** Objects that users write, but that are not called options. */
const filled =
  /^(?:RateLimit|Limits|BodyLimits|ClaimNames|ConfigTarget|NewTenant|Caller|ReplyCookie|ErrorDetails|MessageDetails)$/;

/** Whether a type is an object that users write, by keelson's names for such types. */
export function isOptionName(name) {
  return /(?:Options|Scenario)$/.test(name) || filled.test(name);
}

/** The text of a comment without its sentence on the default, and that default. */
export function splitComment(comment) {
  const text = comment
    .replaceAll(/\{@link [^}|]*\| *([^}]*)\}/g, "$1")
    .replaceAll(/\{@link (?:\w+\.)?(\w+) *\}/g, "`$1`")
    .replaceAll(/ \(specification [^)]*\)/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
  const [sentence, byDefault = ""] = /(?:^|(?<=[.:!?] ))Default:? (.*?)\.(?= |$)/.exec(text) ?? [];
  if (sentence === undefined) return { text, byDefault };
  return { text: text.replace(sentence, "").replaceAll(/ {2,}/g, " ").trim(), byDefault };
}
