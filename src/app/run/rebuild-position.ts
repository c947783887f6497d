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
  let saving: Promise<void> = Promise.resolve();

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
  return {
    places,
    /** Tenants with an event that could not be counted. */
    lost: lost as ReadonlySet<string>,
    reach: (tenant: string, after: string, isCounted: boolean): void => {
      const own = progressOf(tenant);
      own.after = after;
      if (isCounted) own.replayed += 1;
      else lost.add(tenant);
    },
    end: (tenant: string): void => {
      progressOf(tenant).isDone = true;
    },
    reached,
    save: (): Promise<void> => {
      const saved = saving.then(() => write(reached()));
      saving = saved.catch(() => undefined);
      return saved;
    },
  };
}
