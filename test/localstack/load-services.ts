import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient, ListEventBusesCommand } from "@aws-sdk/client-eventbridge";
import { ListQueuesCommand, SQSClient } from "@aws-sdk/client-sqs";
import { DescribeParametersCommand, SSMClient } from "@aws-sdk/client-ssm";
import { localStack } from "./endpoint.ts";

/**
 * LocalStack loads a service at its first call. For SSM this takes seven seconds on an idle machine,
 * and more than keelson's own deadline for parameters on a busy one.
 */
export async function setup(): Promise<void> {
  const connection = { ...localStack(), requestHandler: { requestTimeout: 300_000 } };
  await Promise.all([
    new SSMClient(connection).send(new DescribeParametersCommand({})),
    new DynamoDBClient(connection).send(new ListTablesCommand({})),
    new SQSClient(connection).send(new ListQueuesCommand({})),
    new EventBridgeClient(connection).send(new ListEventBusesCommand({})),
  ]);
}
