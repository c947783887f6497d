/** Parts of the EventBridge SDK that keelson uses; see `dynamodb-sdk.ts`. */
export {
  CreateEventBusCommand,
  EventBridgeClient,
  PutEventsCommand,
  PutRuleCommand,
  PutTargetsCommand,
} from "@aws-sdk/client-eventbridge";
