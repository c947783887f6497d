import { DynamoDBClient, ListTablesCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { GetQueueAttributesCommand, ListQueuesCommand, SQSClient } from "@aws-sdk/client-sqs";
import { unmarshall } from "@aws-sdk/util-dynamodb";

/** A row of any table. */
export type Row = Readonly<Record<string, unknown>>;

/** Reads the stack of the soak directly, without faults. */
export interface Stored {
  readonly sqs: SQSClient;
  /** All rows of the tables whose names contain this, or of all tables. */
  rows(name?: string): Promise<Row[]>;
  /** Returns the number of messages of each queue, without empty queues. */
  messages(): Promise<Readonly<Record<string, number>>>;
  close(): void;
}

export function openStored(stack: {
  readonly endpoint: string;
  readonly env: Readonly<Record<string, string>>;
}): Stored {
  const { endpoint, env } = stack;
  const credentials = {
    accessKeyId: env["AWS_ACCESS_KEY_ID"] ?? "",
    secretAccessKey: env["AWS_SECRET_ACCESS_KEY"] ?? "",
  };
  const place = { endpoint, credentials, region: env["AWS_REGION"] ?? "us-east-1" };
  const [database, sqs] = [new DynamoDBClient(place), new SQSClient(place)];
  const rowsOf = async (TableName: string) => {
    const rows: Row[] = [];
    let ExclusiveStartKey: ScanCommand["input"]["ExclusiveStartKey"];
    do {
      const scan = new ScanCommand({ TableName, ExclusiveStartKey, ConsistentRead: true });
      const page = await database.send(scan);
      rows.push(...(page.Items ?? []).map((item) => unmarshall(item)));
      ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey !== undefined);
    return rows;
  };
  return {
    sqs,
    rows: async (name = "") => {
      const { TableNames = [] } = await database.send(new ListTablesCommand({}));
      const tables = TableNames.filter((table) => table.includes(name));
      return (await Promise.all(tables.map(rowsOf))).flat();
    },
    messages: async () => {
      const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({}));
      const counts: Record<string, number> = {};
      for (const QueueUrl of QueueUrls) {
        const asked = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] });
        const { Attributes = {} } = await sqs.send(asked);
        const count = Object.entries(Attributes)
          .filter(([attribute]) => attribute.startsWith("ApproximateNumberOfMessages"))
          .reduce((sum, [, value]) => sum + Number(value), 0);
        if (count > 0) counts[QueueUrl.slice(QueueUrl.lastIndexOf("/") + 1)] = count;
      }
      return counts;
    },
    close: () => {
      database.destroy();
      sqs.destroy();
    },
  };
}
