import { expect, test } from "vitest";
import { SqsError } from "./sqs-input.ts";
import { answerBatch } from "./sqs-scope.ts";

test("an SqsError fails only its entry, and any other error fails the whole batch", () => {
  const entries = [{ Id: "a" }, { Id: "b" }];
  const refuseA = ({ Id }: { readonly Id?: unknown }) => {
    if (Id === "a") throw new SqsError("MessageNotInflight", "no");
    return { done: true };
  };
  expect(answerBatch(entries, refuseA)).toEqual({
    Successful: [{ Id: "b", done: true }],
    Failed: [
      {
        Id: "a",
        Code: "AWS.SimpleQueueService.MessageNotInflight",
        Message: "no",
        SenderFault: true,
      },
    ],
  });
  const fail = () => {
    throw new TypeError("a fault of ours");
  };
  expect(() => answerBatch(entries, fail)).toThrow("a fault of ours");
});
