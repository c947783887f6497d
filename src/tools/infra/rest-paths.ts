import type { NeededFunction } from "./functions.ts";

/** A resource of a REST API. */
export interface RestPath {
  /** Part of logical IDs; empty for the root. */
  readonly id: string;
  /** ID of the path above, unless that is the root. */
  readonly parent: string | undefined;
  /** The last segment; `undefined` for the root. */
  readonly part: string | undefined;
  /** Names of functions by HTTP method, `ANY` for the others. */
  readonly methods: Readonly<Record<string, string>>;
}

/** The function for all routes, including routes without a separate function. */
const forAll = "http";

interface Node {
  readonly id: string;
  readonly parent: string | undefined;
  readonly part: string | undefined;
  readonly methods: Record<string, string>;
  readonly children: Map<string, Node>;
}

/**
 * The paths of a REST API, which looks for a path segment by segment and never goes back. So every
 * path has the function for all routes as `ANY`, and one below it for what nothing else matches.
 * @throws Error if a path has a character that API Gateway refuses.
 */
export function restPaths(functions: readonly NeededFunction[]): RestPath[] {
  const root = node("", undefined, undefined);
  for (const { name, routes } of functions)
    for (const route of routes) {
      const [method = "", path] = route.split(" ");
      if (path !== undefined) place(root, path.split("/").filter(Boolean), method, name);
    }
  return flattened(root);
}

function node(id: string, parent: string | undefined, part: string | undefined): Node {
  return { id, parent, part, methods: { ANY: forAll }, children: new Map() };
}

function place(root: Node, segments: readonly string[], method: string, name: string) {
  let at = root;
  for (const [depth, segment] of segments.entries()) {
    // Sibling parameters must have the same name; the server reads the path itself.
    const part = segment.startsWith("{") ? `{p${depth + 1}}` : segment;
    if (part.includes("~"))
      throw new Error(
        `a REST API refuses ~ in the path segment ${JSON.stringify(part)} of ${name}; rename it, or use --shape one`,
      );
    const next = at.children.get(part) ?? child(at, part);
    at.children.set(part, next);
    at = next;
  }
  at.methods[method] = name;
}

function child({ id, part: above }: Node, part: string) {
  return node(`${id}${idOf(part)}`, above === undefined ? undefined : id, part);
}

function idOf(part: string) {
  const words = part.replaceAll("-", "Dash").replaceAll(/\{(\w+)\+?\}/g, "$1Var");
  return words.replaceAll(/[^0-9A-Za-z]/g, "").replace(/^./, (letter) => letter.toUpperCase());
}

function flattened(at: Node): RestPath[] {
  const { children, ...path } = at;
  const hasVariable = [...children.keys()].some((part) => part.startsWith("{"));
  const all = [...children.values(), ...(hasVariable ? [] : [child(at, "{proxy+}")])];
  return [path, ...all.flatMap((one) => (one.part === "{proxy+}" ? [leaf(one)] : flattened(one)))];
}

function leaf({ children: _, ...path }: Node): RestPath {
  return path;
}
