import type { RebuildState } from "../projections/projection-store.ts";

/** A tenant, and its last event that an earlier call has replayed. */
export interface TenantPlace {
  readonly tenant: string;
  readonly after: string;
}

interface Progress {
  after: string;
  replayed: number;
  isDone: boolean;
}

/**
 * Position of a rebuild that replays several tenants at the same time: the place of the first
 * tenant that has not ended, in the order of the tenants. A call that resumes there replays the
 * later ones again; marks keep their events from counting twice.
 *
 * @param tenants - those that are left, in order.
 * @param write - writes a position. Its calls never overlap.
 */
export function createPosition(
  begun: RebuildState,
  tenants: readonly string[],
  write: (state: RebuildState) => Promise<void>,
) {
  const places = tenants.map((tenant): TenantPlace => {
    return { tenant, after: tenant === begun.tenant ? begun.after : "" };
  });
  const progress = new Map<string, Progress>();
  const { lost: lostBefore, ...start } = begun;
  // Later tenants are replayed from their start, which tries their failed events again.
  const lost = new Set(lostBefore?.filter((tenant) => tenant <= begun.tenant));
  let state: RebuildState = start;
  let ended = 0;
  let [reachedNow, endedNow] = [0, 0];
  let saving: Promise<void> = Promise.resolve();
  /** The write that has not started. */
  let next: Promise<void> | undefined;
  /** Takes back each loss that is in no write yet. */
  let unsaved: (() => void)[] = [];

  const withProgress = (tenant: string, { after, replayed }: Progress): RebuildState => {
    return { ...state, tenant, after, replayed: state.replayed + replayed };
  };
  const reached = (): RebuildState => {
    for (;;) {
      const { tenant = "" } = places[ended] ?? {};
      const own = ended < places.length ? progress.get(tenant) : undefined;
      const current = own === undefined ? state : withProgress(tenant, own);
      if (!own?.isDone) return lost.size === 0 ? current : { ...current, lost: [...lost] };
      state = current;
      ended += 1;
    }
  };
  const progressOf = (tenant: string): Progress => {
    const known = progress.get(tenant);
    if (known !== undefined) return known;
    const after = tenant === begun.tenant ? begun.after : "";
    const own = { after, replayed: 0, isDone: false };
    progress.set(tenant, own);
    return own;
  };
  const save = (): Promise<void> => {
    next ??= saving.then(async () => {
      next = undefined;
      const written = unsaved;
      unsaved = [];
      await write(reached()).catch((error: unknown) => {
        for (const undo of written) undo();
        throw error;
      });
    });
    saving = next.catch(() => undefined);
    return next;
  };
  return {
    places,
    /** Tenants with an event that could not be counted. */
    lost: lost as ReadonlySet<string>,
    reach: (tenant: string, after: string): void => {
      const own = progressOf(tenant);
      own.after = after;
      own.replayed += 1;
      reachedNow += 1;
    },
    /**
     * Passes over an event that could not be counted, and saves. If that fails, no later position is
     * past the event, so that the next call tries it again.
     */
    lose: (tenant: string, after: string): Promise<void> => {
      const own = progressOf(tenant);
      const before = own.after;
      const wasLost = lost.has(tenant);
      unsaved.push(() => {
        own.after = before;
        if (!wasLost) lost.delete(tenant);
      });
      own.after = after;
      lost.add(tenant);
      return save();
    },
    end: (tenant: string): void => {
      progressOf(tenant).isDone = true;
      endedNow += 1;
    },
    reached,
    /** Counts the events of all tenants, including those after the position, and the tenants left. */
    counts: () => ({ replayed: begun.replayed + reachedNow, left: places.length - endedNow }),
    save,
  };
}
