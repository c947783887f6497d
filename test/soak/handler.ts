import type { Context, SQSEvent } from "aws-lambda";
import {
  type HttpApiEvent,
  lambdaHttp,
  lambdaQueue,
  lambdaSweep,
} from "../../src/hosts/lambda/index.ts";
import { createServer } from "./server.ts";

const server = createServer();
const http = lambdaHttp(server);
const queue = lambdaQueue(server);
const sweep = lambdaSweep(server);

/** Event of a scheduled rule. */
export interface SweepEvent {
  readonly source: "aws.events";
}

/** One function for requests, batches of queues and sweeps. */
export function handler(event: HttpApiEvent | SQSEvent | SweepEvent, context: Context) {
  if ("Records" in event) return queue(event, context);
  return "source" in event ? sweep() : http(event, context);
}
