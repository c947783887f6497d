// The option objects that users fill: those that an entry point exports, or that a function or a method of one takes.
import { isOptionName } from "./members.mjs";

/** Objects that keelson fills, or that its functions return, and that others of its functions take. */
const notFilled =
  /(?:Context|Handle|Definition|Parameter|Request|Session)$|^(?:QuotaDetails|Retry)$/;

/**
 * @returns `types`: `[{ entry, name, symbol }]`, each type once, at the first entry point that has it; `unnamed`: the
 *   parameters that look like options and are not called so.
 */
export function optionTypes({ ts, checker, entries }) {
  const found = new Map();
  const unnamed = [];
  for (const { name: entry, names } of entries) {
    const exported = [...names].filter(([name]) => isOptionName(name));
    const taken = [...names].flatMap(([name, symbol]) => parametersOf(`${entry}: ${name}`, symbol));
    for (const [name, symbol] of [...exported, ...taken])
      if (!found.has(symbol)) found.set(symbol, { entry, name, symbol });
  }
  return { types: [...found.values()], unnamed };

  /** Option types that a function, or the functions of an object, name as their parameters. */
  function parametersOf(place, { declarations = [] }) {
    return declarations
      .flatMap(functionsOf)
      .flatMap(({ parameters }) => parameters)
      .flatMap(({ type }) => (type !== undefined && ts.isTypeReferenceNode(type) ? [type] : []))
      .flatMap((type) => {
        const name = type.typeName.getText();
        const symbol = declaredAt(type.typeName);
        if (!isOurs(symbol)) return [];
        if (isOptionName(name)) return [[name, symbol]];
        if (hasOptional(type) && !notFilled.test(name)) unnamed.push(`${place}: ${name}`);
        return [];
      });
  }

  function functionsOf(declaration) {
    if (ts.isFunctionDeclaration(declaration)) return [declaration];
    const members = declaration.members ?? [];
    return members.flatMap((member) => {
      if (member.type !== undefined && ts.isFunctionTypeNode(member.type)) return [member.type];
      return member.parameters === undefined ? [] : [member];
    });
  }

  function declaredAt(typeName) {
    const symbol = checker.getSymbolAtLocation(typeName);
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
    return isAlias ? checker.getAliasedSymbol(symbol) : symbol;
  }

  function isOurs({ declarations = [] }) {
    const [path = ""] = declarations.map((declaration) => declaration.getSourceFile().fileName);
    return path.includes("/src/") && !path.includes("/node_modules/");
  }

  /** Whether a type has a member that may be left out, as options have. */
  function hasOptional(node) {
    const members = checker.getPropertiesOfType(checker.getTypeFromTypeNode(node));
    return members.some(({ flags }) => (flags & ts.SymbolFlags.Optional) !== 0);
  }
}
