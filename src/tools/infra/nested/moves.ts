import type { Change } from "../difference.ts";
import { own } from "../template.ts";
import type { Flattened } from "./flattened.ts";

/** Two stacks cannot both have a function of one name, or a route of one API. */
const unique: readonly unknown[] = [
  "AWS::Lambda::Function",
  "AWS::ApiGatewayV2::Route",
  "AWS::ApiGateway::Method",
];

/** Services whose resources hold no data: keelson itself moves these, and policies. */
const withoutData = /^AWS::(?:ApiGateway|ApiGatewayV2|CloudWatch|Events|IAM|Lambda|Logs)::/;

/** CloudFormation creates what moves in its new stack before it deletes the old one. */
export function moves(before: Flattened, after: Flattened): Change[] {
  const moved = Object.entries(after.template.Resources).filter(
    ([id]) =>
      own(before.template.Resources, id) !== undefined &&
      before.stacks.get(id) !== after.stacks.get(id),
  );
  const twice = moved.flatMap(([id, { Type }]) => (unique.includes(Type) ? [id] : []));
  const replaced = moved.flatMap(([id, { Type }]) =>
    withoutData.test(String(Type)) ? [] : [`${id} (${Type})`],
  );
  return [
    ...dangerous(
      "functions or routes move to another stack, which fails while the old stack has them: deploy with --shape one first, then this template",
      twice,
    ),
    ...dangerous(
      "resources move to another stack, which creates new ones, and the old ones are deleted with their data; one that has a DeletionPolicy stays in the main template",
      replaced,
    ),
  ];
}

function dangerous(text: string, names: readonly string[]): Change[] {
  return names.length === 0 ? [] : [{ text: `${text}: ${names.join(", ")}`, isDangerous: true }];
}
