import type { Input } from "../service/service.ts";
import { longestVisibilitySeconds } from "./queue-settings.ts";
import { isReceipt } from "./receipt-handle.ts";
import type { EntryOperation } from "./sqs-batch.ts";
import { invalidParameter, SqsError } from "./sqs-error.ts";
import { missingParameter, optionalWhole, requiredText } from "./sqs-input.ts";

export const deleteMessage: EntryOperation = ({ polls }, { name, messages }, input, now) => {
  const receipt = receiptIn(input);
  if (messages.delete(receipt, now) === "expired")
    throw invalidParameter("ReceiptHandle", receipt, "The receipt handle has expired.");
  polls.wake(name); // the next message of the same group can now be received
  return {};
};

export const changeVisibility: EntryOperation = ({ polls }, { name, messages }, input, now) => {
  const receipt = receiptIn(input);
  const seconds = optionalWhole(input, "VisibilityTimeout", 0, longestVisibilitySeconds);
  if (seconds === undefined) throw missingParameter("VisibilityTimeout");
  const outcome = messages.changeVisibility(receipt, seconds * 1000, now);
  if (outcome === "visible")
    throw new SqsError("MessageNotInflight", "The message referred to isn't in flight.");
  if (outcome !== "changed") throw invalidReceipt(receipt);
  polls.wake(name);
  return {};
};

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
