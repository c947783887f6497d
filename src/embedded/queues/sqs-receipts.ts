import type { CallContext, Input } from "../service/service.ts";
import { longestVisibilitySeconds } from "./queue-settings.ts";
import type { StoredQueue } from "./queue-store.ts";
import { isReceipt } from "./receipt-handle.ts";
import { answerBatch, batchEntries } from "./sqs-batch.ts";
import { invalidParameter, SqsError } from "./sqs-error.ts";
import { optionalWhole, requiredText } from "./sqs-input.ts";
import { queueOf, type SqsScope } from "./sqs-scope.ts";

export function deleteMessage(scope: SqsScope, input: Input, { nowMs }: CallContext): object {
  return remove(scope, queueOf(scope, input), input, nowMs);
}

export function deleteMessageBatch(scope: SqsScope, input: Input, { nowMs }: CallContext): object {
  const queue = queueOf(scope, input);
  return answerBatch(batchEntries(input), (entry) => remove(scope, queue, entry, nowMs));
}

export function changeMessageVisibility(
  scope: SqsScope,
  input: Input,
  { nowMs }: CallContext,
): object {
  return changeVisibility(scope, queueOf(scope, input), input, nowMs);
}

export function changeMessageVisibilityBatch(
  scope: SqsScope,
  input: Input,
  { nowMs }: CallContext,
): object {
  const queue = queueOf(scope, input);
  return answerBatch(batchEntries(input), (entry) => changeVisibility(scope, queue, entry, nowMs));
}

function remove(
  scope: SqsScope,
  { name, messages }: StoredQueue,
  input: Input,
  now: number,
): object {
  const receipt = receiptIn(input);
  if (messages.delete(receipt, now) === "expired") {
    throw invalidParameter("ReceiptHandle", receipt, "The receipt handle has expired.");
  }
  scope.polls.wake(name); // the next message of its group is now receivable
  return {};
}

function changeVisibility(
  scope: SqsScope,
  { name, messages }: StoredQueue,
  input: Input,
  now: number,
): object {
  const receipt = receiptIn(input);
  const seconds = optionalWhole(input, "VisibilityTimeout", 0, longestVisibilitySeconds);
  if (seconds === undefined)
    throw new SqsError(
      "MissingParameter",
      "The request must contain the parameter VisibilityTimeout.",
    );
  const outcome = messages.changeVisibility(receipt, seconds * 1000, now);
  if (outcome === "visible")
    throw new SqsError("MessageNotInflight", "The message referred to isn't in flight.");
  if (outcome !== "changed") throw invalidReceipt(receipt);
  scope.polls.wake(name);
  return {};
}

function receiptIn(input: Input): string {
  const receipt = requiredText(input, "ReceiptHandle");
  if (!isReceipt(receipt)) throw invalidReceipt(receipt);
  return receipt;
}

function invalidReceipt(receipt: string): SqsError {
  return new SqsError(
    "ReceiptHandleIsInvalid",
    `The input receipt handle "${receipt.slice(0, 200)}" is not a valid receipt handle.`,
  );
}
