import type { Change } from "../difference.ts";
import { own } from "../template.ts";
import type { Flattened } from "./flattened.ts";

/** Functions keep their names, and two stacks cannot both have a function of one name. */
export function moves(before: Flattened, after: Flattened): Change[] {
  const moved = Object.entries(after.template.Resources).flatMap(([id, { Type }]) => {
    const wasThere = own(before.template.Resources, id) !== undefined;
    const isMoved = wasThere && before.stacks.get(id) !== after.stacks.get(id);
    return isMoved && Type === "AWS::Lambda::Function" ? [id] : [];
  });
  if (moved.length === 0) return [];
  const text = `functions move to another stack, which fails while the old stack has them: deploy with --shape one first, then this template: ${moved.join(", ")}`;
  return [{ text, isDangerous: true }];
}
