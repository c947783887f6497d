/**
 * Place in the application that called keelson: `src/notes.ts:12`, relative to the working directory
 * if it is below it. `undefined` if it is unknown, for example in a bundle. Never throws. It captures
 * a stack, so ask only once something is wrong.
 */
export function callSite(): string | undefined {
  const limit = Error.stackTraceLimit;
  try {
    Reflect.set(Error, "stackTraceLimit", 50);
    return placeIn(new Error().stack, import.meta.url, process.cwd());
  } catch {
    return undefined; // an application can replace `Error.prepareStackTrace`, and delete its directory
  } finally {
    Reflect.set(Error, "stackTraceLimit", limit);
  }
}

/** Adds the caller's place to the problems without a place. */
export function placed<Problem extends { readonly at?: string }>(
  problems: readonly Problem[],
): readonly Problem[] {
  const at = callSite();
  return at === undefined ? problems : problems.map((problem) => ({ at, ...problem }));
}

/** @param module - URL of this module; in a bundle, it is the bundle's. */
export function placeIn(stack: unknown, module: unknown, cwd: string): string | undefined {
  const home = /^(.*\/)(?:src|dist)\/base\/errors\/call-site\.[jt]s$/.exec(pathOf(String(module)));
  if (home?.[1] === undefined || typeof stack !== "string") return undefined;
  const folders = [`${home[1]}src/`, `${home[1]}dist/`];
  const isOwn = ({ path }: Place) =>
    path.includes("/node_modules/keelson/") ||
    (folders.some((folder) => path.startsWith(folder)) && !/\.test\.\w+$/.test(path));
  const places = stack.split("\n").flatMap(placesIn);
  // Some bundlers keep the URL of each module, although its code is in the bundle.
  if (places[0] === undefined || !isOwn(places[0])) return undefined;
  const found = places.find((place) => !isOwn(place));
  if (found === undefined) return undefined;
  const below = pathOf(cwd).replace(/\/?$/, "/");
  const { path, line } = found;
  return `${path.startsWith(below) ? path.slice(below.length) : path}:${line}`;
}

interface Place {
  readonly path: string;
  readonly line: string;
}

/** Returns no place for frames without an absolute path, such as `node:internal` and `<anonymous>`. */
function placesIn(frame: string): Place[] {
  const [, file = "", line = ""] = /^(.+):(\d+):\d+$/.exec(locationOf(frame)) ?? [];
  const path = pathOf(file);
  return /^(?:[A-Z]:)?\//.test(path) ? [{ path, line }] : [];
}

/** `at async call (file:///app/a.ts:1:2)` or `at /app/a.ts:1:2`. */
function locationOf(frame: string): string {
  const text = /^\s*at (?:async )?(.*)$/.exec(frame)?.[1] ?? "";
  return text.endsWith(")") ? text.slice(text.indexOf(" (") + 2, -1) : text;
}

/** The path of a file URL, a Windows path or a path, with slashes and the drive in upper case. */
function pathOf(place: string): string {
  const path = place.startsWith("file:")
    ? decodeURIComponent(place.replace(/[?#].*$/, "").replace(/^file:(?:\/\/(?=\/))?/, ""))
    : place;
  return path
    .replaceAll("\\", "/")
    .replace(/^\/?([a-z]:\/)/i, (_, drive: string) => drive.toUpperCase());
}
