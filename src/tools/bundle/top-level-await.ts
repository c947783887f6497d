/** Rolldown's parser. It returns an ESTree, and throws if the text is not in the language. */
type Parse = (
  code: string,
  options: { readonly lang: "ts" | "tsx" | "jsx"; readonly sourceType: "module" },
) => object;

/** Returns whether the evaluation of an ES module waits. `false` for anything else, such as JSON. */
export function hasTopLevelAwait(code: string | null | undefined, parse: Parse): boolean {
  if (!code?.includes("await")) return false;
  for (const lang of ["ts", "tsx", "jsx"] as const) {
    try {
      return awaits(parse(code, { lang, sourceType: "module" }));
    } catch {
      // another language
    }
  }
  return false;
}

/** A list instead of recursion, because generated expressions may be nested too deeply. */
function awaits(program: object): boolean {
  const nodes: object[] = [program];
  for (const node of nodes) {
    const { type = "", await: isAwait, kind }: Node = node;
    if (type === "AwaitExpression" || isAwait === true || kind === "await using") return true;
    if (/Function(?:Declaration|Expression)$/.test(type)) continue;
    for (const child of Object.values(node))
      if (typeof child === "object" && child !== null) nodes.push(child);
  }
  return false;
}

interface Node {
  readonly type?: string;
  /** Of a `for await`. */
  readonly await?: boolean;
  readonly kind?: string;
}
