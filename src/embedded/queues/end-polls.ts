import { request } from "node:http";

/** Operation that only the embedded SQS has. */
export const endPollsOperation = "KeelsonEndPolls";

/**
 * Ends the long polls on a queue of the embedded stack. A stopping process therefore does not wait
 * for its polls, and no poll takes a message for a process that has stopped. Never fails: an
 * unreachable stack has no polls.
 */
export async function endPolls(queueUrl: string): Promise<void> {
  const headers = {
    "x-amz-target": `AmazonSQS.${endPollsOperation}`,
    "content-type": "application/x-amz-json-1.0",
  };
  await new Promise<void>((resolve) => {
    // Avoids fetch, whose first call takes 20 ms to load.
    const asking = request(new URL("/", queueUrl), { method: "POST", headers }, (response) => {
      response.resume().once("close", resolve);
    });
    asking.once("error", () => resolve());
    asking.end(JSON.stringify({ QueueUrl: queueUrl }));
  });
}
