import { FrameworkError, isTypedError } from "../../../base/errors/errors.ts";
import type { Logger } from "../../../base/log/logger.ts";
import type { Clock } from "../../../base/process/clock.ts";
import { forgetOldest } from "../../../base/process/forget-oldest.ts";
import type { AppOverrides } from "../declare/app-overrides.ts";
import type { ComputedContext, ConfigKeyDefinition } from "../declare/key.ts";
import {
  type ConfigSource,
  cascade,
  cascadeFromComputed,
  frameworkDefault,
  type LockedValueError,
  type Misfit,
  type Resolved,
} from "./cascade.ts";
import type { ComputedNode, ComputedValues } from "./computed-values.ts";
import type { Decision, HeldDecisions, KeyRows, RowView } from "./key-rows.ts";
import type { RowCipher } from "./row-cipher.ts";
import { expiryMs, isCurrent, type RowOwner, type RowSource } from "./rows.ts";

export interface ConfigSession extends RowOwner {
  readonly rows: RowView;
  readonly log: Logger;
  readonly clock: Clock;
  readonly computed: ComputedValues;
  readonly held: HeldDecisions;
  readonly cipher: RowCipher;
  readonly reads?: ConfigReads | undefined;
  contextFor(node: ComputedNode): ComputedContext;
}

export type ReadSource = ConfigSource | "request";

export interface ConfigReads {
  /** `version` belongs to the row that supplied the value, if any. */
  note(owner: RowOwner, id: string, source: ReadSource, version: number | undefined): void;
}

/** Member of every `ctx.db` that opens sessions for {@link ConfigResolver.getWithSource}. */
export const configSession: unique symbol = Symbol("keelson.configSession");

export interface ConfigDatabase {
  [configSession](caller: RowOwner): ConfigSession;
}

/** Resolves configuration keys to values (specification 4.1). */
export interface ConfigResolver {
  /**
   * Reads a key for the caller of `session`, like `ctx.config`; synchronously if no I/O is needed.
   * @throws FrameworkError `config_unavailable` (503) if the rows cannot be read.
   * @internal
   */
  resolve(
    session: ConfigSession,
    id: string,
    definition: ConfigKeyDefinition,
    from?: ComputedNode,
  ): Resolved | Promise<Resolved>;
  /**
   * Returns the value of a key for any tenant and user, and the level that supplied it
   * (specification 2.2), for support and debugging. Errors of the key's `computed` function are
   * rethrown.
   * @throws TypeError if `db` is not a `ctx.db`; FrameworkError `config_unavailable` (503) if the
   * rows cannot be read.
   * @example
   * const { id, definition } = handle;
   * const { source } = await resolver.getWithSource(id, definition, "acme", "ann", ctx.db);
   */
  getWithSource(
    id: string,
    definition: ConfigKeyDefinition,
    tenantId: string | undefined,
    userId: string | undefined,
    db: object,
  ): Promise<Resolved>;
  /** App-boot override of a key, if any. */
  override(id: string): unknown;
}

const rememberedMisfits = 10_000;

/**
 * Creates a resolver (specification 2.2). Check `appOverrides` with `validateAppOverrides` first.
 * Default: no overrides.
 * @example
 * const resolver = createConfigResolver({ appOverrides: { "files:config:max-size-mb": 50 } });
 */
export function createConfigResolver({
  appOverrides = {},
}: {
  readonly appOverrides?: AppOverrides;
} = {}): ConfigResolver {
  const overrides = new Map(Object.entries(appOverrides));
  const reports = createReports();

  const resolveWith = (read: Read, rows: KeyRows): Resolved | Promise<Resolved> => {
    const { session, id } = read;
    let decision = rows.decision;
    if (!stillHolds(decision, read)) {
      decision = decide(read, rows, overrides.get(id), reports);
      rows.decision = decision;
    }
    const { outcome } = decision;
    if (outcome === "ask-computed") return compute(read, rows, reports);
    session.held.set(id, decision);
    const supplier = rows.levels.find(({ source }) => source === outcome.source);
    session.reads?.note(session, id, outcome.source, supplier?.row?.version);
    return outcome;
  };

  /** Like `resolveWith`, but reads the key ring and retries if a secret's key is unknown. */
  const resolveOpened: typeof resolveWith = (read, rows) => {
    try {
      return resolveWith(read, rows);
    } catch (error) {
      // Safe cast: `resolveWith` throws no other error synchronously.
      const waiting = read.session.cipher.prepare((error as LockedValueError).ringKey);
      // Rejects, so that every read fails in the same way.
      if (waiting === undefined) return Promise.reject(error);
      return waiting.then(() => resolveWith(read, rows));
    }
  };

  const stillHolds = (
    decision: Decision | undefined,
    { definition, session }: Read,
  ): decision is Decision =>
    decision !== undefined &&
    decision.by === reports &&
    decision.definition === definition &&
    (decision.untilMs === Number.POSITIVE_INFINITY || session.clock.now() < decision.untilMs);

  const resolve: ConfigResolver["resolve"] = (session, id, definition, from) => {
    const read = { session, id, definition, from };
    const rows = session.rows.rowsOf(id, definition.scope);
    if (!(rows instanceof Promise)) return resolveOpened(read, rows);
    return rows.then((arrived) => resolveOpened(read, arrived), unavailable);
  };

  return Object.freeze<ConfigResolver>({
    resolve,
    override: (id) => overrides.get(id),
    getWithSource: async (id, definition, tenantId, userId, db) => {
      const database = db as Partial<ConfigDatabase> | null; // plain JavaScript passes anything
      if (typeof database?.[configSession] !== "function") {
        throw new TypeError(
          `getWithSource(${id}): the last argument is not a ctx.db; pass the db of the ctx of a handler or job`,
        );
      }
      return resolve(database[configSession]({ tenantId, userId }), id, definition);
    },
  });
}

export function createFirstSeen(limit: number): (name: string) => boolean {
  const names = new Set<string>();
  return (name) => {
    if (names.has(name)) return false;
    names.add(name);
    forgetOldest(names, limit);
    return true;
  };
}

interface Read {
  readonly session: ConfigSession;
  readonly id: string;
  readonly definition: ConfigKeyDefinition;
  readonly from: ComputedNode | undefined;
}

function createReports() {
  const isNew = createFirstSeen(rememberedMisfits);
  return {
    /** Logs a row's misfit once per version, any other misfit once per caller and reason. */
    misfit: ({ log }: ConfigSession, id: string, misfit: Misfit, origin: string | undefined) => {
      if (isNew(`${id} ${misfit.source} ${origin} ${misfit.reason}`))
        log.warn("config.misfit", { key: id, ...misfit });
    },
    /** Logs once per version, so that operators see when the last unbound secret disappears. */
    unbound: ({ log }: ConfigSession, id: string, source: RowSource, origin: string) => {
      if (isNew(`${id} ${origin} unbound`)) log.warn("config.secret_unbound", { key: id, source });
    },
  };
}

type Reports = ReturnType<typeof createReports>;

function decide(
  { session, id, definition }: Read,
  rows: KeyRows,
  override: unknown,
  reports: Reports,
): Decision {
  const { levels } = rows;
  const nowMs = session.clock.now();
  let untilMs = Number.POSITIVE_INFINITY;
  const current = levels.flatMap(({ row, ...level }) => {
    if (!isCurrent(row, nowMs)) return [];
    if (row.expiresAt !== undefined) untilMs = Math.min(untilMs, expiryMs(row));
    const { partition, source } = level;
    const opened = session.cipher.openRow(row, definition, { partition, key: id });
    if ("isUnbound" in opened && opened.isUnbound)
      reports.unbound(session, id, source, `${partition} ${row.version}`);
    return [{ ...level, version: row.version, row: opened }];
  });
  const given = { rows: current, override, frameworkDefault: frameworkDefault(id, definition) };
  const outcome = cascade(definition, given, (misfit) => {
    const row = current.find(({ source }) => source === misfit.source);
    const origin = row === undefined ? levels[0]?.partition : `${row.partition} ${row.version}`;
    reports.misfit(session, id, misfit, origin);
  });
  const value = Promise.resolve(outcome === "ask-computed" ? undefined : outcome.value);
  return { by: reports, definition, rows, outcome, value, untilMs };
}

async function compute(
  { session, id, definition, from }: Read,
  { levels }: KeyRows,
  reports: Reports,
): Promise<Resolved> {
  const value = await session.computed.read(id, from, (node) =>
    definition.computed?.(session.contextFor(node)),
  );
  const given = { frameworkDefault: frameworkDefault(id, definition) };
  const resolved = cascadeFromComputed(definition, value, given, (misfit) =>
    reports.misfit(session, id, misfit, levels[0]?.partition),
  );
  session.reads?.note(session, id, resolved.source, undefined);
  return resolved;
}

/** Rethrows a typed error. Any other error is the store's and becomes `config_unavailable`. */
export function unavailable(error: unknown, what: "read" | "written" = "read"): never {
  if (isTypedError(error)) throw error;
  const message = `Configuration cannot be ${what} at the moment`;
  throw new FrameworkError("config_unavailable", message, { cause: error });
}
