import type { Metrics } from "../../../base/metrics/metrics.ts";
import { type Clock, systemClock } from "../../../base/process/clock.ts";
import type { ConfigScope, RegisteredConfigKey } from "../declare/key.ts";
import { type KeyRows, type RowView, uncachedRows } from "../read/key-rows.ts";
import {
  type ConfigRow,
  type ConfigRowReader,
  pathFrom,
  type RowLevel,
  type RowOwner,
  rowLevels,
} from "../read/rows.ts";
import { createFlights, type FetchPage, type FlightSchedule, processSchedule } from "./flights.ts";
import {
  type CachedPartition,
  createPartitionCache,
  type PartitionCache,
  pageOf,
} from "./partition-cache.ts";
import { type Ages, invalidate, isFresh, isUsable, note, type Page } from "./row-page.ts";

/** Keys of one feature, fetched together; `keys.tenant`, for example, may have tenant rows. */
interface KeyGroup {
  readonly feature: string;
  readonly keys: Readonly<Record<ConfigScope, readonly string[]>>;
}

interface GroupedKey {
  readonly id: string;
  readonly scope: ConfigScope;
  readonly group: KeyGroup;
}

export function groupKeys(
  registered: Iterable<RegisteredConfigKey>,
): ReadonlyMap<string, GroupedKey> {
  const groups = new Map<string, { feature: string; keys: Record<ConfigScope, string[]> }>();
  const keys = new Map<string, GroupedKey>();
  for (const { id, feature, definition } of registered) {
    const group = groups.get(feature) ?? { feature, keys: { system: [], tenant: [], user: [] } };
    groups.set(feature, group);
    keys.set(id, { id, scope: definition.scope, group });
    // A key may have rows at its own scope and at every broader one (specification 4.1, rule 3).
    group.keys.system.push(id);
    if (definition.scope !== "system") group.keys.tenant.push(id);
    if (definition.scope === "user") group.keys.user.push(id);
  }
  return keys;
}

export interface CachedRowsOptions extends Ages {
  readonly maxTenants: number;
  readonly reader: ConfigRowReader;
  readonly keyGroups: ReadonlyMap<string, GroupedKey>;
  readonly clock?: Clock;
  readonly schedule?: FlightSchedule;
  readonly metrics?: Metrics | undefined;
}

export interface StaleRead {
  readonly key: string;
  readonly ageMs: number;
  readonly reason: string;
}

type OnStale = (read: StaleRead) => void;

export type CachedRows = ReturnType<typeof createCachedRows>;

const reportEveryMs = 60_000;

interface CachedKeyRows extends KeyRows {
  readonly pages: readonly Page[];
}

export function createCachedRows(options: CachedRowsOptions) {
  const { reader, keyGroups, maxTenants, metrics } = options;
  const { clock = systemClock, schedule = processSchedule } = options;
  const cache = createPartitionCache<CachedKeyRows>(maxTenants);
  const fetch = createFlights(reader, options, clock, schedule);
  const findPage = (partition: string, key: string): Page | undefined => {
    const group = keyGroups.get(key)?.group;
    return group === undefined ? undefined : groupPage(cache.use(pathFrom(partition))[0], group);
  };
  /** `isUnchecked` is for rows put by tests, whatever their version. */
  const take = (isUnchecked: boolean) => (partition: string, key: string, row: ConfigRow) => {
    const page = findPage(partition, key);
    if (page !== undefined) note(page, key, row, clock.now(), isUnchecked);
  };
  const parts: ViewParts = { cache, fetch, keyGroups, clock, reader, metrics };
  return {
    /** While the store fails, `onStale` is called at most once per minute and page. */
    view: (owner: RowOwner, onStale: OnStale): RowView => new View(parts, owner, onStale),
    noteWrite: take(false),
    notePut: take(true),
    invalidate: (partition: string, key: string): void => {
      const page = findPage(partition, key);
      if (page !== undefined) invalidate(page);
    },
    ageMs: (partition: string, key: string): number | undefined => {
      const askedMs = findPage(partition, key)?.askedMs;
      return askedMs === undefined ? undefined : Math.max(0, clock.now() - askedMs);
    },
    size: cache.size,
  };
}

interface ViewParts extends Pick<CachedRowsOptions, "keyGroups" | "reader" | "metrics"> {
  readonly cache: PartitionCache<CachedKeyRows>;
  readonly fetch: FetchPage;
  readonly clock: Clock;
}

/** A class: closures per request cost 4 times as much (`wrapped-no-log`, bench/results.json). */
class View implements RowView {
  readonly #given: ViewParts;
  readonly #owner: RowOwner;
  readonly #onStale: OnStale;
  readonly #levels: readonly RowLevel[];
  #parts: readonly CachedPartition<CachedKeyRows>[] = [];

  constructor(given: ViewParts, owner: RowOwner, onStale: OnStale) {
    this.#given = given;
    this.#owner = owner;
    this.#onStale = onStale;
    this.#levels = rowLevels("user", owner);
  }

  rowsOf(key: string, scope: ConfigScope): KeyRows | Promise<KeyRows> {
    const { cache, clock, keyGroups, reader } = this.#given;
    const declared = keyGroups.get(key);
    if (declared === undefined || declared.scope !== scope)
      return uncachedRows(reader, this.#owner).rowsOf(key, scope);
    // Evicting a tenant also evicts its users, so only the narrowest partition is checked.
    if (this.#parts[0] === undefined || this.#parts[0].isEvicted)
      this.#parts = cache.use(this.#levels);
    const nowMs = clock.now();
    const known = this.#parts[this.#narrowest(scope)]?.values.get(key);
    if (!known?.isHeld(nowMs)) return this.#rowsOfPages(declared, known?.pages, nowMs);
    if (this.#given.metrics !== undefined) countHit(this.#given.metrics, known.pages, nowMs);
    return known;
  }

  /** Separate from `rowsOf`, where most reads end: closures move captured variables to the heap. */
  #rowsOfPages(
    declared: GroupedKey,
    known: readonly Page[] | undefined,
    nowMs: number,
  ): KeyRows | Promise<KeyRows> {
    const { group, scope } = declared;
    const pages =
      known ?? this.#parts.slice(this.#narrowest(scope)).map((part) => groupPage(part, group));
    if (!pages.every((page) => isFresh(page, nowMs))) this.#refresh(group, nowMs);
    if (!pages.every((page) => isUsable(page, nowMs))) return this.#wait(declared, pages, nowMs);
    if (this.#given.metrics !== undefined) countHit(this.#given.metrics, pages, nowMs);
    return this.#compose(declared, pages);
  }

  #narrowest(scope: ConfigScope): number {
    const { length } = this.#levels;
    if (scope === "user") return 0;
    return scope === "tenant" ? Math.max(0, length - 2) : length - 1;
  }

  /** Fetches the whole group, because its other keys are likely to be read next. */
  #refresh(group: KeyGroup, nowMs: number): void {
    for (const part of this.#parts) {
      const page = groupPage(part, group);
      if (page.keys.length > 0 && !isFresh(page, nowMs)) this.#given.fetch(page, nowMs);
    }
  }

  #compose({ id, scope }: GroupedKey, pages: readonly Page[]): CachedKeyRows {
    const narrowest = this.#narrowest(scope);
    const composed: CachedKeyRows = {
      levels: this.#levels
        .slice(narrowest)
        .map((level, index) => ({ ...level, row: pages[index]?.rows.get(id)?.row })),
      isHeld: holding(pages),
      decision: undefined,
      pages,
    };
    this.#parts[narrowest]?.values.set(id, composed);
    return composed;
  }

  async #wait(declared: GroupedKey, pages: readonly Page[], nowMs: number): Promise<KeyRows> {
    const { clock, fetch, metrics } = this.#given;
    const awaited = pages.filter((page) => !isUsable(page, nowMs));
    const fetching = awaited.map((page) => fetch(page, nowMs));
    await Promise.all(fetching.map((flight) => flight?.done));
    const failed: Page[] = [];
    for (const [index, page] of awaited.entries()) {
      const flight = fetching[index];
      // Without a flight, fetching is paused after a slow failure, and the page has outdated rows.
      if (flight === undefined || flight.failure !== undefined) {
        if (flight?.failure !== undefined && page.askedMs === undefined) throw flight.failure.error;
        failed.push(page);
      } else if (page.askedMs === undefined || page.askedMs < flight.askedMs) {
        // The page was invalidated during the fetch, so the response was dropped.
        return this.#wait(declared, pages, clock.now());
      }
    }
    const [oldest] = failed;
    if (oldest !== undefined) this.#report(declared.id, oldest, clock.now());
    const outcome = oldest === undefined ? "miss" : "stale";
    metrics?.record("keelson.config.reads", 1, { "keelson.outcome": outcome });
    return this.#compose(declared, pages);
  }

  #report(key: string, page: Page, nowMs: number): void {
    const { reportedMs = Number.NEGATIVE_INFINITY } = page;
    if (nowMs >= reportedMs && nowMs < reportedMs + reportEveryMs) return;
    page.reportedMs = nowMs;
    // `askedMs` is defined, because `#wait` throws for a page that was never fetched.
    const ageMs = Math.max(0, nowMs - Number(page.askedMs));
    this.#onStale({ key, ageMs, reason: String(page.failure?.error) });
  }
}

function countHit(metrics: Metrics, pages: readonly Page[], nowMs: number): void {
  metrics.record("keelson.config.reads", 1, { "keelson.outcome": "hit" });
  const askedMs = Math.min(...pages.map(({ askedMs = nowMs }) => askedMs));
  metrics.record("keelson.config.age", Math.max(0, nowMs - askedMs) / 1_000);
}

function groupPage(part: CachedPartition<unknown>, { feature, keys }: KeyGroup): Page {
  return pageOf(part, feature, keys[scopeOf(part.partition)]);
}

function scopeOf(partition: string): ConfigScope {
  if (partition.startsWith("config#user#")) return "user";
  return partition.startsWith("config#tenant#") ? "tenant" : "system";
}

function holding(pages: readonly Page[]): (nowMs: number) => boolean {
  const stamp = stampOf(pages);
  const fromMs = Math.max(...pages.map(({ askedMs = 0 }) => askedMs));
  const untilMs = Math.min(...pages.map(({ dueMs }) => dueMs));
  return (nowMs) => nowMs >= fromMs && nowMs < untilMs && stampOf(pages) === stamp;
}

/** Stamps only grow, so an equal sum means that no page has changed. */
function stampOf(pages: readonly Page[]): number {
  let sum = 0;
  for (const page of pages) sum += page.stamp;
  return sum;
}
