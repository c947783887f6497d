import type { BootProblem } from "../../base/errors/boot.ts";
import type { Report } from "../../base/errors/option-table.ts";
import { nearest, quoted } from "../../base/errors/quoted.ts";
import type { HookDeclaration } from "./hooks.ts";
import { aFunction, knownOptions, named, problemsOf, requireOptions } from "./requirements.ts";

interface Hooked {
  readonly hooks: ReadonlyMap<string, readonly HookDeclaration[]>;
  readonly handlers: ReadonlyMap<string, { readonly name: string; readonly kind: string }>;
}

const run = aFunction("pass async (ctx, input) => ...");
const hookRequirements = { before: run, commit: run, after: run };

/** Declares a hook. Boot checks that the write exists. */
export function hook(
  feature: string,
  write: unknown,
  options: unknown,
  report: Report,
): HookDeclaration {
  const name = named(write);
  const key = hookKey(name);
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, Object.keys(hookRequirements), report);
  // Safe cast: `requireOptions` reports wrong types, and a server with problems is never built.
  const { before, commit, after } = given as unknown as HookDeclaration;
  if ([before, commit, after].every((run) => run === undefined))
    problem("hook-empty", "it does nothing", "pass before, commit or after, each a function");
  requireOptions(given, hookRequirements, problem);
  return { feature, write: name, before, commit, after };
}

export function hookProblems({ hooks, handlers }: Hooked): BootProblem[] {
  const writes = [...handlers.values()]
    .filter(({ kind }) => kind === "write")
    .map(({ name }) => name);
  return [...hooks.values()].flat().flatMap(({ feature, write }) => {
    const kind = handlers.get(write)?.kind;
    if (kind === "write") return [];
    if (kind === "query") {
      const message = `${quoted(write)} is a query, and only writes have hooks`;
      return [{ feature, key: hookKey(write), rule: "hook-query", message, fix: "hook a write" }];
    }
    const meant = nearest(write, writes);
    const fix =
      meant === undefined
        ? "name a write, or add the feature that declares it"
        : `did you mean ${quoted(meant)}?`;
    const message = `no feature of this server declares the write ${quoted(write)}`;
    return [{ feature, key: hookKey(write), rule: "hook-undeclared", message, fix }];
  });
}

function hookKey(write: string): string {
  return `hook ${write}`;
}
