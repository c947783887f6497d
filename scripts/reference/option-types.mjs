// The option objects that users fill: those that an entry point exports, or that a function of one takes.
import { isOptionName } from "./members.mjs";

/** @returns `[{ entry, name, symbol }]`, each type once, at the first entry point that has it. */
export function optionTypes({ ts, checker, entries }) {
  const found = new Map();
  for (const { name: entry, names } of entries) {
    const exported = [...names].filter(([name]) => isOptionName(name));
    const taken = [...names.values()].flatMap(parametersOf);
    for (const [name, symbol] of [...exported, ...taken])
      if (!found.has(symbol)) found.set(symbol, { entry, name, symbol });
  }
  return [...found.values()];

  /** Option types that a function names as its parameters. */
  function parametersOf({ declarations = [] }) {
    return declarations
      .filter((declaration) => ts.isFunctionDeclaration(declaration))
      .flatMap(({ parameters }) => parameters)
      .flatMap(({ type }) => (type === undefined ? [] : [type]))
      .filter((type) => ts.isTypeReferenceNode(type) && isOptionName(type.typeName.getText()))
      .map(({ typeName }) => [typeName.getText(), declaredAt(typeName)]);
  }

  function declaredAt(typeName) {
    const symbol = checker.getSymbolAtLocation(typeName);
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
    return isAlias ? checker.getAliasedSymbol(symbol) : symbol;
  }
}
