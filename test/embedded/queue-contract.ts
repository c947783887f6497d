import { randomBytes } from "node:crypto";
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  SendMessageCommand,
  type SendMessageCommandInput,
  type SQSClient,
} from "@aws-sdk/client-sqs";

/** One connection to the SQS under test. */
export interface SqsConnection {
  readonly client: SQSClient;
  /** Lets time pass for the SQS under test, in milliseconds: moves its clock where it can be moved, else waits. */
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Where implementations are known to differ. */
export interface SqsCapabilities {
  /** A visibility timeout above 12 hours, a dead-letter queue that is not there, and a batch that is too long are refused. */
  readonly checksInput: boolean;
  /** What a redrive or a move leaves behind: the source of a dead letter, new ids of messages moved back. */
  readonly tracksDeadLetters: boolean;
  /** The receipt handle of an earlier receive has no effect, and a message that is visible has no visibility to change. */
  readonly tracksReceipts: boolean;
  /** A wrong entry of a batch does not keep the others from being sent. */
  readonly answersBatchesPartly: boolean;
  /** A duplicate is answered with the sequence number of the first. */
  readonly repeatsSequenceNumbers: boolean;
  /** A standard queue delivers messages of quiet groups before those of a noisy one. */
  readonly isFair: boolean;
}

/** The queues of one run of the contract, and what is done with them. */
export type ContractQueues = ReturnType<typeof contractQueues>;

/** Makes queues under names of their own. `connection` is asked only once tests run. */
export function contractQueues(connection: () => SqsConnection) {
  const base = `contract-${fresh()}`;
  const created: string[] = [];
  const client = () => connection().client;

  const createNamed = async (QueueName: string, Attributes: Record<string, string> = {}) => {
    const { QueueUrl = "" } = await client().send(
      new CreateQueueCommand({ QueueName, Attributes }),
    );
    created.push(QueueUrl);
    return QueueUrl;
  };
  const create = (Attributes: Record<string, string> = {}) =>
    createNamed(`${base}-${fresh()}`, Attributes);
  const createFifo = (Attributes: Record<string, string> = {}) =>
    createNamed(`${base}-${fresh()}.fifo`, { FifoQueue: "true", ...Attributes });
  const attributesOf = async (QueueUrl: string) =>
    (await client().send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] })))
      .Attributes ?? {};
  const arnOf = async (QueueUrl: string) => (await attributesOf(QueueUrl))["QueueArn"] ?? "";
  const send = (
    QueueUrl: string,
    MessageBody: string,
    more: Partial<SendMessageCommandInput> = {},
  ) => client().send(new SendMessageCommand({ QueueUrl, MessageBody, ...more }));
  const sendTo = (QueueUrl: string, MessageGroupId: string, body: string) =>
    send(QueueUrl, body, { MessageGroupId, MessageDeduplicationId: fresh() });
  const receive = async (QueueUrl: string, more: Partial<ReceiveMessageCommandInput> = {}) => {
    const answer = await client().send(
      new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: 10,
        MessageSystemAttributeNames: ["All"],
        MessageAttributeNames: ["All"],
        ...more,
      }),
    );
    return answer.Messages ?? [];
  };
  const receiveOne = async (
    QueueUrl: string,
    more: Partial<ReceiveMessageCommandInput> = {},
  ): Promise<Message> => {
    const [message] = await receive(QueueUrl, {
      MaxNumberOfMessages: 1,
      WaitTimeSeconds: 10,
      ...more,
    });
    if (message === undefined) throw new Error("Nothing was received within 10 seconds");
    return message;
  };
  const remove = (QueueUrl: string, { ReceiptHandle }: Message) =>
    client().send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
  const hide = (QueueUrl: string, { ReceiptHandle }: Message, VisibilityTimeout: number) =>
    client().send(
      new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }),
    );
  const pass = (ms: number) => connection().pass(ms);
  const deleteAll = async () => {
    for (const QueueUrl of created)
      await client()
        .send(new DeleteQueueCommand({ QueueUrl }))
        .catch(() => {}); // some are gone
  };
  return {
    base,
    client,
    createNamed,
    create,
    createFifo,
    attributesOf,
    arnOf,
    send,
    sendTo,
    receive,
    receiveOne,
    remove,
    hide,
    pass,
    deleteAll,
  };
}

/** What messages say, in their order. */
export function bodies(messages: readonly Message[]): (string | undefined)[] {
  return messages.map(({ Body }) => Body);
}

/** The name of the error that a call fails with, `taken` where it does not. */
export function refused(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "taken",
    (error: Error) => error.name,
  );
}

export function fresh(): string {
  return randomBytes(6).toString("hex");
}
