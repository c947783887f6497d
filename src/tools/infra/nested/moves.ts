import type { Change } from "../difference.ts";
import { own } from "../template.ts";
import type { Flattened } from "./flattened.ts";

/** Two stacks cannot both have a function of one name, or a route of one API. */
const unique: readonly unknown[] = [
  "AWS::Lambda::Function",
  "AWS::ApiGatewayV2::Route",
  "AWS::ApiGateway::Method",
];

/** CloudFormation creates what moves in its new stack before it deletes the old one. */
export function moves(before: Flattened, after: Flattened): Change[] {
  const moved = Object.entries(after.template.Resources).flatMap(([id, { Type }]) => {
    const wasThere = own(before.template.Resources, id) !== undefined;
    const isMoved = wasThere && before.stacks.get(id) !== after.stacks.get(id);
    return isMoved && unique.includes(Type) ? [id] : [];
  });
  if (moved.length === 0) return [];
  const text = `functions or routes move to another stack, which fails while the old stack has them: deploy with --shape one first, then this template: ${moved.join(", ")}`;
  return [{ text, isDangerous: true }];
}
