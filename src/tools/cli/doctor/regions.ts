import type { TableDescription } from "@aws-sdk/client-dynamodb";
import {
  configTable,
  keptEventsTable,
  onceTable,
  outboxTable,
} from "../../../app/handlers/table.ts";
import { doubtful, fine, type Outcome, wrong } from "./outcome.ts";

interface RegionRule {
  /** Each Region evaluates conditions on its own replica, and the last write of an item wins. */
  readonly eventual: Judgement;
  /** Conditions hold across Regions, but DynamoDB refuses transactions. */
  readonly strong: Judgement;
}

type Judgement = readonly [judge: typeof wrong, consequence: string];

const refused = "DynamoDB refuses transactions there";

const rules = new Map<string, RegionRule>([
  [
    onceTable.name,
    {
      eventual: [wrong, "two Regions would both win a claim"],
      strong: [wrong, `${refused}, so no handler can commit`],
    },
  ],
  [
    outboxTable.name,
    {
      eventual: [wrong, "each Region would dispatch the events and jobs of all Regions"],
      strong: [wrong, `${refused}, so no handler can publish or enqueue`],
    },
  ],
  [
    keptEventsTable.name,
    {
      eventual: [doubtful, "two Regions can both count an event in a projection"],
      strong: [wrong, `${refused}, so no handler can publish an event that is kept`],
    },
  ],
  [
    configTable.name,
    {
      eventual: [fine, "the last Region to write a setting wins"],
      strong: [doubtful, `${refused}, so settings can be read but not written`],
    },
  ],
]);

/** Only keelson's own tables have a rule: whether yours may be global depends on your handlers. */
export function regionRule(name: string): RegionRule | undefined {
  return rules.get(name);
}

/** `fix` replaces the table. `own` is the Region asked, which DynamoDB does not list. */
export function regionsOutcome(
  rule: RegionRule,
  own: string,
  { GlobalTableVersion, Replicas = [], MultiRegionConsistency }: TableDescription,
  fix: readonly string[],
): Outcome {
  if (GlobalTableVersion === undefined && Replicas.length === 0) return fine("not a global table");
  const regions = new Set([own, ...Replicas.map(({ RegionName }) => String(RegionName))]);
  const isStrong = MultiRegionConsistency === "STRONG";
  const [judge, consequence] = isStrong ? rule.strong : rule.eventual;
  const kind = isStrong ? "a strongly consistent global table" : "a global table";
  const message = `it is ${kind}, in ${[...regions].join(", ")}: ${consequence}`;
  if (judge !== wrong) return judge(message);
  return wrong(`${message}; create a separate table in each Region`, ...fix);
}
