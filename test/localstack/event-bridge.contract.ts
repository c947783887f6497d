import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import { afterAll } from "vitest";
import {
  describeEventBridgeContract,
  notShownByEmulators,
} from "../embedded/event-bridge-contract.ts";
import { localStack } from "./endpoint.ts";

describeEventBridgeContract(
  "LocalStack",
  async () => {
    const client = new EventBridgeClient(localStack());
    const sqs = new SQSClient(localStack());
    return {
      client,
      sqs,
      async close() {
        client.destroy();
        sqs.destroy();
      },
    };
  },
  { checksInput: false, disablesRules: false, resolvesGroups: false },
);

afterAll(() =>
  console.log(
    `Behaviour of EventBridge that emulators do not show:\n- ${notShownByEmulators.join("\n- ")}`,
  ),
);
