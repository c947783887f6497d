/** What is used of the EventBridge SDK; see `dynamodb-sdk.ts`. */
export {
  CreateEventBusCommand,
  EventBridgeClient,
  PutEventsCommand,
  PutRuleCommand,
  PutTargetsCommand,
} from "@aws-sdk/client-eventbridge";
