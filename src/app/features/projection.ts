import { quoted } from "../../base/errors/quoted.ts";
import { ambientStore } from "../../base/request/ambient.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { Events } from "../../base/types/names.ts";
import { isEventType } from "../../parts/messages/check-payload.ts";
import { type RawOptions, type Report, unknownOptions } from "./declare.ts";
import type { Awaitable } from "./handler.ts";
import type { ConsumerDeclaration, EventOf } from "./message-handlers.ts";
import type {
  ProjectionContext,
  ProjectionDeclaration,
  ProjectionRun,
} from "./projection-declaration.ts";
import type { TenantOf } from "./tenant-table.ts";

/** Options of a projection. */
export interface ProjectionOptions {
  /** A whole number from 1. With another the projection is made anew, by `keelson projection rebuild`, beside the one that is read. */
  readonly version: number;
  /**
   * What becomes of each event, by its type: the items that are written, in one transaction with the note that the event is counted.
   * Events come in any order, and each counts once. It is called for the active version as well while another is declared.
   */
  readonly on: {
    readonly [Type in keyof Events]?: (
      ctx: ProjectionContext,
      event: EventOf<Type>,
      projection: ProjectionRun,
    ) => Awaitable<readonly CommitItem[]>;
  };
}

/** A declared projection as handlers use it. */
export interface Projection {
  /**
   * Makes a text for the keys of the projection's rows: its name and version, and the parts behind them. Inside the projection the
   * version is the one that is written, elsewhere the active one, as it was five seconds ago at the most.
   *
   * @throws Error outside of a request, because the version depends on the server; TypeError for parts that are no texts.
   * @example
   * const Key = await table.key(ctx, await usage.key(ctx, "total")); // { pk: "acme/files.usage@1/total" }
   */
  readonly key: (ctx: TenantOf, ...parts: readonly string[]) => Promise<string>;
}

/** Registers a projection; whether its events are kept is known at boot. */
export function projection(
  feature: string,
  name: string,
  options: RawOptions,
  report: Report,
): ProjectionDeclaration {
  const shown = typeof name === "string" ? name : quoted(name);
  const key = `projection ${shown}`;
  const problem = (rule: string, message: string, fix: string) =>
    report({ key, rule, message, fix });
  const { version, on } = options ?? {};
  unknownOptions(key, options, ["version", "on"], report);
  if (typeof name !== "string" || !isEventType(name)) {
    problem(
      "projection-name",
      `name ${quoted(name)} is not <entity>.<name>`,
      'use two kebab-case words, for example "files.usage"',
    );
  }
  if (!Number.isInteger(version) || Number(version) < 1) {
    problem("projection-version", `\`version\` is ${quoted(version)}`, "use a whole number from 1");
  }
  const functions = Object.entries(typeof on === "object" && on !== null ? on : {});
  if (functions.length === 0) {
    problem(
      "projection-events",
      "`on` names no event",
      'pass on: { "file.created": async (ctx, event) => [...] }',
    );
  }
  for (const [type, run] of functions) {
    if (typeof run === "function") continue;
    problem(
      "handler",
      `\`on\` of ${quoted(type)} is not a function`,
      "pass async (ctx, event) => [...]",
    );
  }
  // Safe: what is none was reported, and such a server is never built.
  return {
    feature,
    name: shown,
    version: Number(version),
    on: new Map(functions) as ProjectionDeclaration["on"],
  };
}

/** The consumers of a projection: one for each type. */
export function projectionConsumers(declared: ProjectionDeclaration): ConsumerDeclaration[] {
  const { feature, name, on } = declared;
  return [...on.keys()].map((type) => ({
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
      if (store === undefined) {
        throw new Error(
          `projection "${name}": its version is known only while a handler runs; make keys inside the handler`,
        );
      }
      const { projecting, runtime } = store;
      const isWritten = projecting?.name === name;
      const version = isWritten
        ? projecting.version
        : await (await runtime.projections.open()).version(name, ctx.user.tenantId);
      return [`${name}@${version}`, ...parts.map((part) => escaped(name, part))].join("/");
    },
  });
}

/** As in a JSON pointer (RFC 6901), so that no two lists of parts make the same key. */
function escaped(name: string, part: unknown): string {
  if (typeof part === "string") return part.replaceAll("~", "~0").replaceAll("/", "~1");
  throw new TypeError(`projection "${name}": part ${quoted(part)} of a key is not a text`);
}
