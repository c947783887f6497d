import { request } from "node:http";

export const endPollsOperation = "KeelsonEndPolls";

/**
 * Ends the long polls on an embedded queue, so that a stopping process neither waits for its polls
 * nor takes a message with them. Never fails: an unreachable stack has no polls.
 */
export async function endPolls(queueUrl: string): Promise<void> {
  const headers = {
    "x-amz-target": `AmazonSQS.${endPollsOperation}`,
    "content-type": "application/x-amz-json-1.0",
  };
  await new Promise<void>((resolve) => {
    // The first `fetch` would take 20 ms to load.
    const asking = request(new URL("/", queueUrl), { method: "POST", headers }, (response) => {
      response.resume().once("close", resolve);
    });
    asking.once("error", () => resolve());
    asking.end(JSON.stringify({ QueueUrl: queueUrl }));
  });
}
