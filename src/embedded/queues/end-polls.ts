import { request } from "node:http";

/** The embedded stack's own operation of SQS. */
export const endPollsOperation = "KeelsonEndPolls";

/**
 * Ends the polls that wait for messages of a queue of the embedded stack: a process that stops does not wait for them, and no
 * message is taken by a poll whose process has gone. Never fails: a stack that is not there has no polls.
 */
export async function endPolls(queueUrl: string): Promise<void> {
  const headers = {
    "x-amz-target": `AmazonSQS.${endPollsOperation}`,
    "content-type": "application/x-amz-json-1.0",
  };
  await new Promise<void>((resolve) => {
    // Not fetch, whose first call loads for 20 ms.
    const asking = request(new URL("/", queueUrl), { method: "POST", headers }, (response) => {
      response.resume().once("close", resolve);
    });
    asking.once("error", () => resolve());
    asking.end(JSON.stringify({ QueueUrl: queueUrl }));
  });
}
