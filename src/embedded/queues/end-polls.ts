import { request } from "node:http";

export const endPollsOperation = "KeelsonEndPolls";

/** Ends the long polls of a queue, so that a stopping process receives no message. Never fails. */
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
