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

export function parseRoute(text: string): ParsedRoute | RouteProblem {
  const refuse = (what: string, fix: string) => ({ problem: `route ${quoted(text)} ${what}`, fix });
  const [, method, pattern] = (typeof text === "string" && form.exec(text)) || [];
  if (method === undefined || pattern === undefined)
    return refuse(
      'is not "<METHOD> /<path>"',
      'write it as "GET /files/:id", with GET, POST, PUT, PATCH or DELETE',
    );
  const segments: Segment[] = [];
  const names = new Set<string>();
  for (const part of pattern === "/" ? [] : pattern.slice(1).split("/")) {
    if (part === "") return refuse("has an empty segment", "remove the doubled or trailing slash");
    if (!part.startsWith(":")) {
      if (!/^[A-Za-z0-9._~-]+$/.test(part) || part === "." || part === "..")
        return refuse(
          `has the segment ${quoted(part)}`,
          "use letters, digits, `-`, `_`, `.` and `~`, or a parameter such as :id",
        );
      segments.push({ static: part });
      continue;
    }
    const param = part.slice(1);
    if (!/^[A-Za-z][A-Za-z0-9_]*$/.test(param))
      return refuse(
        `has the parameter ${quoted(part)}`,
        "name it with letters, digits and `_`, beginning with a letter",
      );
    if (names.has(param))
      return refuse(`has the parameter :${param} twice`, "give each parameter a different name");
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

/** Pairs of routes that match the same requests: they differ only in parameter names. */
export function conflicts<Target>(routes: readonly RouteEntry<Target>[]) {
  const seen = new Map<string, RouteEntry<Target>>();
  return routes.flatMap((second) => {
    const { method, segments } = second.route;
    const parts = segments.map((segment) => ("static" in segment ? segment.static : ":"));
    const shape = `${method} /${parts.join("/")}`;
    const first = seen.get(shape);
    if (first !== undefined) return [{ first, second }];
    seen.set(shape, second);
    return [];
  });
}
