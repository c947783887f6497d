import { setTimeout } from "node:timers/promises";
import { SQSClient } from "@aws-sdk/client-sqs";
import { afterAll } from "vitest";
import { describeSqsContract, notShownByEmulators } from "../embedded/sqs-contract.ts";
import { localStack } from "./endpoint.ts";

describeSqsContract(
  "LocalStack",
  async () => {
    const client = new SQSClient(localStack());
    return { client, pass: (ms) => setTimeout(ms), close: async () => client.destroy() };
  },
  {
    checksInput: false,
    tracksDeadLetters: false,
    tracksReceipts: false,
    answersBatchesPartly: false,
    repeatsSequenceNumbers: false,
    isFair: false,
  },
);

afterAll(() =>
  console.log(
    `Behaviour of SQS that emulators do not show:\n- ${notShownByEmulators.join("\n- ")}`,
  ),
);
