import { GetQueueUrlCommand, ReceiveMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { SQSRecord } from "aws-lambda";

const account = "arn:aws:sqs:us-east-1:000000000000";

/** Receives messages of a queue, as an event source mapping hands them to a function. */
export async function receiveRecords(
  sqs: SQSClient,
  QueueName: string,
  WaitTimeSeconds: number,
): Promise<SQSRecord[]> {
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName }));
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({
      QueueUrl,
      WaitTimeSeconds,
      MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ["All"],
    }),
  );
  return Messages.map(({ MessageId = "", ReceiptHandle = "", Body = "", Attributes = {} }) => ({
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    attributes: Attributes as unknown as SQSRecord["attributes"], // safe: all were asked for
    messageAttributes: {},
    md5OfBody: "",
    eventSource: "aws:sqs",
    eventSourceARN: `${account}:${QueueName}`,
    awsRegion: "us-east-1",
  }));
}
