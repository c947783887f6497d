import { type IamRequest, iamRequests, type KeysOf } from "./iam-requests.ts";
import { account } from "./simulator.ts";

/** A call of AWS as it was sent: `DynamoDB_20120810.PutItem`, and its input. */
export interface RecordedCall {
  readonly target: string;
  readonly input: Readonly<Record<string, unknown>>;
}

const arn = (service: string, resource: string) =>
  `arn:aws:${service}:eu-west-1:${account}:${resource}`;
const lastOf = (path: unknown) => String(path).slice(String(path).lastIndexOf("/") + 1);

/** IAM's questions for a call. @throws Error for a service that this file does not know. */
export function requestsOf({ target, input }: RecordedCall, keysOf: KeysOf): IamRequest[] {
  const [service = "", operation = ""] = target.split(".");
  const one = (prefix: string, resource: string) => [
    { action: `${prefix}:${operation}`, resource: arn(prefix, resource), context: {} },
  ];
  switch (service) {
    case "DynamoDB_20120810":
      return iamRequests(operation, input, keysOf);
    case "AmazonSQS":
      return one("sqs", lastOf(input["QueueUrl"] ?? input["QueueName"]));
    case "AmazonSSM":
      return one("ssm", `parameter${String(input["Path"] ?? input["Name"])}`);
    case "AWSEvents":
      // Safe: as the command has it.
      return (input["Entries"] as readonly { readonly EventBusName: string }[]).flatMap(
        ({ EventBusName: bus }) => one("events", `event-bus/${bus}`),
      );
    default:
      throw new Error(`the permissions of ${target} are unknown here`);
  }
}
