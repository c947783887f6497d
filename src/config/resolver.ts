import type { Clock } from "../context/clock.ts";
import type { PipelineContext } from "../context/pipeline-context.ts";
import { FrameworkError, isTypedError } from "../errors/errors.ts";
import type { Logger } from "../log/logger.ts";
import { cascade, cascadeFromComputed, type Misfit, type Resolved } from "./cascade.ts";
import type { ComputedNode, ComputedValues } from "./computed.ts";
import type { ConfigKeyDefinition } from "./declaration.ts";
import { createFirstSeen } from "./first-seen.ts";
import { frameworkDefault } from "./framework-defaults.ts";
import type { AppOverrides } from "./overrides.ts";
import { rowValue } from "./row-value.ts";
import { type ConfigRow, type ConfigRowReader, isCurrent, type RowLevel, type RowOwner, rowLevels } from "./rows.ts";

/** What reading configuration for one caller takes: one a request. */
export interface ConfigSession extends RowOwner {
  readonly rows: ConfigRowReader;
  readonly log: Logger;
  readonly clock: Clock;
  readonly computed: ComputedValues;
  /** The `ctx` for a computed function: what is read through it, is read on behalf of `node`. */
  contextFor(node: ComputedNode): PipelineContext;
}

/** Under this member a `ctx.db` opens sessions, for {@link ConfigResolver.getWithSource}. */
export const configSession: unique symbol = Symbol("keelson.configSession");

/** A database that configuration can be read through: every `ctx.db` is one. */
export interface ConfigDatabase {
  readonly [configSession]: (caller: RowOwner) => ConfigSession;
}

/** Resolves configuration keys to values (specification 4.1). */
export interface ConfigResolver {
  /**
   * Reads a key for the caller of `session`, as `ctx.config` does.
   *
   * @param from - the computed key whose function reads, where it is one.
   * @throws FrameworkError `config_unavailable` (503) where the rows cannot be read, and
   * whatever the key's `computed` function throws.
   */
  resolve(session: ConfigSession, id: string, definition: ConfigKeyDefinition, from?: ComputedNode): Promise<Resolved>;
  /**
   * Reads a key for any caller and tells which level supplied the value (specification 2.2).
   * For support and debugging, not for handlers under load.
   *
   * @param db - a `ctx.db`.
   * @throws TypeError where `db` is not a `ctx.db`; otherwise like `resolve`.
   * @example
   * const { value, source } = await resolver.getWithSource(handle.id, handle.definition, "acme", "ann", ctx.db);
   */
  getWithSource(
    id: string,
    definition: ConfigKeyDefinition,
    tenantId: string | undefined,
    userId: string | undefined,
    db: object,
  ): Promise<Resolved>;
  /** The app-boot override of a key; `undefined` where there is none. */
  override(id: string): unknown;
}

/** How many misfit values are remembered as reported, so that each is reported once. */
const rememberedMisfits = 10_000;

/**
 * Creates a resolver (specification 2.2). `appOverrides` are expected to have passed
 * `validateAppOverrides`; the default is none.
 *
 * @example
 * const resolver = createConfigResolver({ appOverrides: { "files:config:max-upload-size-mb": 50 } });
 */
export function createConfigResolver({ appOverrides = {} }: { readonly appOverrides?: AppOverrides } = {}): ConfigResolver {
  const overrides = new Map(Object.entries(appOverrides));
  const reported = createFirstSeen(rememberedMisfits);

  const resolve: ConfigResolver["resolve"] = async (session, id, definition, from) => {
    const levels = rowLevels(definition.scope, session);
    const stored = await readRows(session.rows, id, levels);
    const nowMs = session.clock.now();
    const current = levels.flatMap((level, index) => {
      const row = stored[index];
      return isCurrent(row, nowMs) ? [{ ...level, version: row.version, row: rowValue(row, definition) }] : [];
    });
    const given = { rows: current, override: overrides.get(id), frameworkDefault: frameworkDefault(id, definition) };
    const report = (misfit: Misfit) => {
      const row = current.find(({ source }) => source === misfit.source);
      // A row is reported once a version; a computed value once for each caller and reason.
      const origin = row === undefined ? `${levels[0]?.partition} ${misfit.reason}` : `${row.partition} ${row.version}`;
      if (reported.isNew(`${id} ${misfit.source} ${origin}`)) session.log.warn("config.misfit", { key: id, ...misfit });
    };
    const resolved = cascade(definition, given, report);
    if (resolved !== "ask-computed") return resolved;
    const value = await session.computed.read(id, from, (node) => definition.computed?.(session.contextFor(node)));
    return cascadeFromComputed(definition, value, given, report);
  };

  return Object.freeze({
    resolve,
    override: (id: string) => overrides.get(id),
    getWithSource: async (
      id: string,
      definition: ConfigKeyDefinition,
      tenantId: string | undefined,
      userId: string | undefined,
      db: object,
    ) => {
      if (!isConfigDatabase(db)) {
        throw new TypeError(
          `getWithSource(${id}): the last argument is not a ctx.db; pass the db of the ctx of a handler or job`,
        );
      }
      return resolve(db[configSession]({ tenantId, userId }), id, definition);
    },
  });
}

async function readRows(
  reader: ConfigRowReader,
  key: string,
  levels: readonly RowLevel[],
): Promise<readonly (ConfigRow | undefined)[]> {
  try {
    return await reader.read(levels.map(({ partition }) => ({ partition, key })));
  } catch (error) {
    if (isTypedError(error)) throw error;
    throw new FrameworkError("config_unavailable", "Configuration cannot be read at the moment", { cause: error });
  }
}

function isConfigDatabase(db: unknown): db is ConfigDatabase {
  return typeof db === "object" && db !== null && configSession in db && typeof db[configSession] === "function";
}
