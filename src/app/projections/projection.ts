import type { Report } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { ambientStore } from "../../base/request/ambient.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { type AnyEvent, nameOf } from "../../base/types/handles.ts";
import type { Events } from "../../base/types/names.ts";
import type { Awaitable } from "../handlers/handler.ts";
import type {
  ConsumerDeclaration,
  EventOf,
  ProjectionContext,
  ProjectionDeclaration,
  ProjectionRun,
} from "../handlers/message-handlers.ts";
import {
  aFunction,
  knownOptions,
  named,
  problemsOf,
  required,
  requireOptions,
  requireValue,
  twoWords,
} from "../handlers/requirements.ts";
import type { TenantOf } from "../handlers/table.ts";

/** Handler of a projection's event, which returns items to write. */
export type Apply<Event extends AnyEvent> = (
  ctx: ProjectionContext,
  event: EventOf<Event>,
  projection: ProjectionRun,
) => Awaitable<readonly CommitItem[]>;

/** Options of a projection. */
export interface ProjectionOptions<Given extends readonly AnyEvent[] = readonly AnyEvent[]> {
  /**
   * Whole number from 1. `keelson projection rebuild` builds a new version while readers keep using
   * the active version.
   */
  readonly version: number;
  /**
   * Pairs of an event and its handler, or handlers by event type. Handlers return items to write.
   * keelson writes these items in the transaction that marks the event as counted, so each event
   * counts once. Events arrive in any order. While another version is active, the handler is also
   * called for that version.
   */
  readonly on:
    | { readonly [Index in keyof Given]: readonly [Given[Index], Apply<Given[Index]>] }
    | HandlersByType;
}

/** Handlers by event type. Without entries in `Events` it would accept any value. */
type HandlersByType = [keyof Events] extends [never]
  ? never
  : { readonly [Type in keyof Events]?: Apply<Type> };

/** A declared projection, as handlers use it. */
export interface Projection {
  /**
   * Makes a string for the keys of the projection's rows from its name, its version and the parts.
   * In the projection's own handlers, the version is the one being written; elsewhere, it is the
   * active version, up to five seconds stale.
   * @throws Error if no handler is running, because the version depends on the server; TypeError
   * for parts that are not strings.
   * @example
   * const Key = await table.key(ctx, await usage.key(ctx, "total")); // { pk: "acme/files.usage@1/total" }
   */
  readonly key: (ctx: TenantOf, ...parts: readonly string[]) => Promise<string>;
}

const versionRequirement = {
  version: required({
    accepts: (version) => Number.isInteger(version) && Number(version) >= 1,
    rule: "projection-version",
    fix: "use a whole number from 1",
  }),
};

export function projection(
  feature: string,
  name: string,
  options: unknown,
  report: Report,
): ProjectionDeclaration {
  const shown = named(name);
  const key = `projection ${shown}`;
  const problem = problemsOf(key, report);
  const given = knownOptions(key, options, ["version", "on"], report);
  requireValue("name", name, twoWords("projection-name", "name", "files.usage"), problem);
  requireOptions(given, versionRequirement, problem);
  const { version, on } = given;
  const functions = pairsOf(on);
  if (functions.length === 0) {
    const fix = "pass on: [[fileCreated, async (ctx, event) => [...]]]";
    problem("projection-events", "`on` names no event", fix);
  }
  const isFunction = required(aFunction("pass async (ctx, event) => [...]"));
  for (const [type, run] of functions)
    requireValue(`\`on\` of ${quoted(type)}`, run, isFunction, problem);
  return {
    feature,
    name: shown,
    version: Number(version),
    types: functions.map(([type]) => type),
    // Safe cast: wrong types are reported, and a server with problems is never built.
    on: new Map(functions) as ProjectionDeclaration["on"],
  };
}

/** Pairs of `on`, with the names of the events. In plain JavaScript, `on` may be anything. */
function pairsOf(on: unknown): [type: string, run: unknown][] {
  if (!Array.isArray(on)) return Object.entries(typeof on === "object" && on !== null ? on : {});
  return on.map((pair: unknown) => {
    const [event, run] = Array.isArray(pair) ? pair : [pair];
    return [nameOf(event), run];
  });
}

export function projectionConsumers(declared: ProjectionDeclaration): ConsumerDeclaration[] {
  const { feature, name, types } = declared;
  return types.map((type) => ({
    feature,
    name: `${name}:${type}`,
    type,
    projection: declared,
    run: () => undefined,
  }));
}

export function projectionHandle({ name }: ProjectionDeclaration): Projection {
  return Object.freeze({
    key: async (ctx: TenantOf, ...parts: readonly string[]) => {
      const store = ambientStore();
      if (store === undefined)
        throw new Error(
          `projection "${name}": its version is known only while a handler runs; make keys inside the handler`,
        );
      const { projecting, runtime } = store;
      const isWritten = projecting?.name === name;
      const version = isWritten
        ? projecting.version
        : await (await runtime.projections.open()).version(name, ctx.user.tenantId);
      return [`${name}@${version}`, ...parts.map((part) => escaped(name, part))].join("/");
    },
  });
}

/** Escapes like a JSON pointer (RFC 6901), so that different parts never make the same key. */
function escaped(name: string, part: unknown) {
  if (typeof part === "string") return part.replaceAll("~", "~0").replaceAll("/", "~1");
  throw new TypeError(`projection "${name}": part ${quoted(part)} of a key is not a string`);
}
