import { quoted } from "../../base/errors/quoted.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import { MustWaitError } from "../../parts/limits/must-wait.ts";
import type { SlotPlace } from "../../parts/limits/slot.ts";
import type { Slots } from "../../parts/limits/slots.ts";
import type { RunParts } from "../../parts/once/claimed-run.ts";
import type { Concurrency } from "../handlers/concurrency.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";

type Limit = NonNullable<Concurrency["total"]>;

export interface TaskSlots {
  /** Saves the claim of a run that would have to wait. @throws MustWaitError. */
  refuseIfFull(): Promise<void>;
  /** Takes the slots of a run that holds its claim. @throws MustWaitError if none is free. */
  enter(ctx: PipelineContext, run: Pick<RunParts, "held">): Promise<void>;
  /** Gives back the slots that the run has taken. Never throws. */
  leave(): Promise<void>;
}

/** All holders share an item of DynamoDB, which holds 400 KB. */
const mostHolders = 1_000;

/** Slots of one run: first its tenant's, then the handler's. */
export function slotsOf(
  { slots }: { readonly slots: Lazy<Slots> },
  handler: string,
  tenantId: string | undefined,
  { perTenant, total }: Concurrency,
): TaskSlots {
  const wanted: (readonly [SlotPlace, Limit])[] = [];
  if (perTenant !== undefined) wanted.push([{ handler, limit: "perTenant", tenantId }, perTenant]);
  if (total !== undefined) wanted.push([{ handler, limit: "total" }, total]);
  const taken: { readonly place: SlotPlace; readonly owner: string }[] = [];
  return {
    refuseIfFull: async () => {
      const { isFull } = await slots.open();
      for (const [place] of wanted) if (isFull(place)) throw new MustWaitError(place.limit);
    },
    enter: async (ctx, run) => {
      const { take } = await slots.open();
      for (const [place, limit] of wanted) {
        const most = await numberOf(limit, `${handler}: concurrency.${place.limit}`, ctx);
        // Safe cast: every run of a message has a claim.
        const { claim } = run.held() as NonNullable<ReturnType<RunParts["held"]>>;
        const { key, owner } = claim;
        // Noted before, because a call whose response is lost may have taken the slot.
        taken.push({ place, owner });
        if (!(await take(place, most, { owner, key }))) {
          taken.pop();
          throw new MustWaitError(place.limit);
        }
      }
    },
    leave: async () => {
      if (taken.length === 0) return;
      const { leave } = await slots.open();
      await Promise.all(taken.map(({ place, owner }) => leave(place, owner)));
    },
  };
}

/** @throws TypeError if the key of a limit has no number. Every run would be below it. */
async function numberOf(limit: Limit, name: string, ctx: PipelineContext): Promise<number> {
  const value: unknown = await (typeof limit === "number" ? limit : ctx.config(limit));
  if (typeof value === "number" && value >= 0) return Math.min(Math.floor(value), mostHolders);
  throw new TypeError(`${name} is ${quoted(value)}; give the key a default, and bounds from 0`);
}
