import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { afterAll } from "vitest";
import { describeDynamoDbContract, notShownByEmulators } from "../embedded/dynamodb-contract.ts";
import { localStack } from "./endpoint.ts";

// DynamoDB Local, which LocalStack runs, throws for a broken rule that only the stored item shows,
// and counts the request's bytes; LocalStack
// keeps time to live itself, and lets it be switched on again.
describeDynamoDbContract(
  "LocalStack",
  async () => {
    const client = new DynamoDBClient(localStack());
    return {
      client,
      documents: DynamoDBDocumentClient.from(client),
      close: async () => client.destroy(),
    };
  },
  { validationReasons: false, countsStoredItems: false, refusesRepeatedTimeToLive: false },
);

afterAll(() =>
  console.log(
    `Behaviour of DynamoDB that emulators do not show:\n- ${notShownByEmulators.join("\n- ")}`,
  ),
);
