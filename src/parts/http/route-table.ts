import type { ParsedRoute, RouteEntry, Segment } from "./route.ts";

export type RouteMatch<Target> =
  | {
      readonly kind: "found";
      readonly target: Target;
      readonly params: Record<string, string>;
      readonly head: boolean;
    }
  | { readonly kind: "options" | "method-not-allowed"; readonly allow: string }
  | { readonly kind: "malformed"; readonly message: string }
  | { readonly kind: "not-found" };

export interface RouteTable<Target> {
  match(method: string, path: string, basePath?: string): RouteMatch<Target>;
}

interface Node<Target> {
  readonly statics: Map<string, Node<Target>>;
  param: Node<Target> | undefined;
  readonly byMethod: Map<string, RouteEntry<Target>>;
}

const maxPathLength = 8_192;

/** In each segment, static text takes precedence over a parameter. */
export function createRouteTable<Target>(
  routes: readonly RouteEntry<Target>[],
): RouteTable<Target> {
  const root = emptyNode<Target>();
  const withoutParams = new Map<string, Node<Target>>();
  let ofServer: string | undefined;
  for (const entry of routes) {
    const node = entry.route.segments.reduce(descend, root);
    if (!entry.route.segments.some((segment) => "param" in segment))
      withoutParams.set(entry.route.pattern, node);
    if (!node.byMethod.has(entry.route.method)) node.byMethod.set(entry.route.method, entry);
  }
  return {
    match: (method, path, basePath = "") => {
      // Routes without parameters take precedence over all others.
      const direct = basePath === "" ? withoutParams.get(path)?.byMethod.get(method) : undefined;
      if (direct !== undefined)
        return { kind: "found", target: direct.target, params: Object.create(null), head: false };
      if (path.length > maxPathLength)
        return {
          kind: "malformed",
          message: `The path is longer than ${maxPathLength} characters`,
        };
      if (!isWellFormed(path))
        return { kind: "malformed", message: "The path has malformed percent-encoding" };
      // `OPTIONS *` refers to the server as a whole (RFC 9110, 9.3.7).
      if (path === "*" && method === "OPTIONS") {
        ofServer ??= allowOf(routes.map(({ route }) => route.method));
        return { kind: "options", allow: ofServer };
      }
      const parts = partsOf(path, basePath);
      if (parts === undefined) return { kind: "not-found" };
      const nodes = candidates(root, parts);
      const wanted = method === "HEAD" ? "GET" : method;
      for (const node of nodes) {
        const entry = node.byMethod.get(wanted);
        if (entry !== undefined)
          return {
            kind: "found",
            target: entry.target,
            params: paramsOf(entry.route, parts),
            head: method === "HEAD",
          };
      }
      if (nodes.length === 0) return { kind: "not-found" };
      return {
        kind: method === "OPTIONS" ? "options" : "method-not-allowed",
        allow: allowOf(nodes.flatMap(({ byMethod }) => [...byMethod.keys()])),
      };
    },
  };
}

function emptyNode<Target>(): Node<Target> {
  return { statics: new Map(), param: undefined, byMethod: new Map() };
}

function descend<Target>(node: Node<Target>, segment: Segment): Node<Target> {
  if ("param" in segment) {
    node.param ??= emptyNode();
    return node.param;
  }
  const next = node.statics.get(segment.static) ?? emptyNode<Target>();
  node.statics.set(segment.static, next);
  return next;
}

/** Encoded segments below `basePath`; `undefined` if no route can match the path. */
function partsOf(path: string, basePath: string): string[] | undefined {
  if (!path.startsWith(`${basePath}/`))
    return path === basePath && basePath !== "" ? [] : undefined;
  const rest = path.slice(basePath.length + 1);
  if (rest === "") return [];
  const parts = rest.split("/");
  // An empty segment (`//`, a trailing slash) or a dot segment, even an encoded one, never matches.
  for (const part of parts) if (part === "" || isDots(part)) return undefined;
  return parts;
}

/**
 * Matching nodes, static ones first. Routes of the same shape share a node, so the work is at most
 * the number of routes times the number of segments.
 */
function candidates<Target>(root: Node<Target>, parts: readonly string[]): Node<Target>[] {
  let nodes: Node<Target>[] = [root];
  for (const part of parts) {
    const text = decoded(part);
    const next: Node<Target>[] = [];
    for (const { statics, param } of nodes) {
      const named = statics.get(text);
      if (named !== undefined) next.push(named);
      if (param !== undefined) next.push(param);
    }
    nodes = next;
    if (nodes.length === 0) break;
  }
  return nodes.filter((node) => node.byMethod.size > 0);
}

function paramsOf(route: ParsedRoute, parts: readonly string[]): Record<string, string> {
  const params: Record<string, string> = Object.create(null);
  let index = 0;
  for (const segment of route.segments) {
    /* v8 ignore next -- for the compiler: a matched route has as many segments as parts */
    const part = parts[index] ?? "";
    if ("param" in segment) params[segment.param] = decoded(part);
    index += 1;
  }
  return params;
}

function allowOf(given: readonly string[]): string {
  const methods = new Set(given);
  if (methods.has("GET")) methods.add("HEAD");
  methods.add("OPTIONS");
  return [...methods].sort().join(", ");
}

function isDots(part: string): boolean {
  const first = part.charCodeAt(0);
  return (first === dot || first === percent) && /^(\.|%2e){1,2}$/i.test(part);
}

const dot = 0x2e;
const percent = 0x25;

function decoded(part: string): string {
  return part.includes("%") ? decodeURIComponent(part) : part;
}

function isWellFormed(path: string): boolean {
  if (!path.includes("%")) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
