export type RouteMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export type Segment = { readonly static: string } | { readonly param: string };

export interface ParsedRoute {
  readonly method: RouteMethod;
  readonly segments: readonly Segment[];
  /** Pattern as declared: `/files/:id`. */
  readonly pattern: string;
}

export interface RouteProblem {
  readonly problem: string;
  readonly fix: string;
}

const form = /^(GET|POST|PUT|PATCH|DELETE) (\/\S*)$/;
const reserved = ["config", "log", "settings", "health", "metrics", "openapi.json"];

/** Parses a route: `GET /files/:id`. Returns the problem of an invalid route, never throws. */
export function parseRoute(text: string): ParsedRoute | RouteProblem {
  const [, method, pattern] = (typeof text === "string" && form.exec(text)) || [];
  if (method === undefined || pattern === undefined) {
    return {
      problem: `route ${quoted(text)} is not "<METHOD> /<path>"`,
      fix: 'write it as "GET /files/:id", with GET, POST, PUT, PATCH or DELETE',
    };
  }
  const segments: Segment[] = [];
  const names = new Set<string>();
  for (const part of pattern === "/" ? [] : pattern.slice(1).split("/")) {
    if (part === "")
      return {
        problem: `route ${quoted(text)} has an empty segment`,
        fix: "remove the doubled or trailing slash",
      };
    if (!part.startsWith(":")) {
      if (!/^[A-Za-z0-9._~-]+$/.test(part) || part === "." || part === "..") {
        return {
          problem: `route ${quoted(text)} has the segment ${quoted(part)}`,
          fix: "use letters, digits, `-`, `_`, `.` and `~`, or a parameter such as :id",
        };
      }
      segments.push({ static: part });
      continue;
    }
    const param = part.slice(1);
    if (!/^[A-Za-z][A-Za-z0-9_]*$/.test(param)) {
      return {
        problem: `route ${quoted(text)} has the parameter ${quoted(part)}`,
        fix: "name it with letters, digits and `_`, beginning with a letter",
      };
    }
    if (names.has(param))
      return {
        problem: `route ${quoted(text)} has the parameter :${param} twice`,
        fix: "give each parameter a name of its own",
      };
    names.add(param);
    segments.push({ param });
  }
  // The cast is safe: `form` matches only these methods.
  return { method: method as RouteMethod, segments, pattern };
}

/** Whether a path belongs to keelson's own routes. */
export function reservedPath(path: string): boolean {
  const [, first] = path.split("/");
  return first !== undefined && reserved.includes(first);
}

function quoted(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 200))
    : `of type ${typeof value}`;
}

export interface RouteEntry<Target> {
  readonly route: ParsedRoute;
  readonly target: Target;
}

/**
 * Returns the pairs of routes that match the same requests: they differ only in parameter names.
 */
export function conflicts<Target>(
  routes: readonly RouteEntry<Target>[],
): { readonly first: RouteEntry<Target>; readonly second: RouteEntry<Target> }[] {
  const seen = new Map<string, RouteEntry<Target>>();
  const found: { first: RouteEntry<Target>; second: RouteEntry<Target> }[] = [];
  for (const entry of routes) {
    const shape = `${entry.route.method} /${entry.route.segments.map((segment) => ("static" in segment ? segment.static : ":")).join("/")}`;
    const first = seen.get(shape);
    if (first === undefined) seen.set(shape, entry);
    else found.push({ first, second: entry });
  }
  return found;
}
