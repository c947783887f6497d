// AWS's list prices in us-east-1, from which docs/cost.md is computed.
import type { Bill } from "./meter.ts";

/** When the prices were last compared, and with what. */
export const pricedAt = "29 November 2026";

interface Price {
  readonly name: string;
  readonly dollars: number;
  readonly per: string;
  readonly page: string;
  /** AWS's pages fill in most numbers by a script, so that a stored copy may lack them. */
  readonly seen: "AWS's page" | "AWS's documentation" | "third parties";
}

const aws = "https://aws.amazon.com";

export const prices = {
  read: {
    name: "DynamoDB on demand, read request unit",
    dollars: 0.125,
    per: "million",
    page: `${aws}/dynamodb/pricing/on-demand/`,
    seen: "third parties",
  },
  write: {
    name: "DynamoDB on demand, write request unit",
    dollars: 0.625,
    per: "million",
    page: `${aws}/dynamodb/pricing/on-demand/`,
    seen: "third parties",
  },
  standard: {
    name: "SQS, standard queue: request of 64 KB",
    dollars: 0.4,
    per: "million",
    page: `${aws}/sqs/pricing/`,
    seen: "third parties",
  },
  fair: {
    name: "SQS, standard queue: request with a message group (fair queue)",
    dollars: 0.5,
    per: "million",
    page: `${aws}/sqs/pricing/`,
    seen: "third parties",
  },
  fifo: {
    name: "SQS, FIFO queue: request of 64 KB",
    dollars: 0.5,
    per: "million",
    page: `${aws}/sqs/pricing/`,
    seen: "third parties",
  },
  event: {
    name: "EventBridge, custom event of 64 KB",
    dollars: 1,
    per: "million",
    page: `${aws}/eventbridge/pricing/`,
    seen: "third parties",
  },
  parameter: {
    name: "SSM, standard parameters at standard throughput",
    dollars: 0,
    per: "call",
    page: `${aws}/systems-manager/pricing/`,
    seen: "AWS's documentation",
  },
  logs: {
    name: "CloudWatch Logs, ingestion",
    dollars: 0.5,
    per: "GB",
    page: `${aws}/cloudwatch/pricing/`,
    seen: "third parties",
  },
  invocation: {
    name: "Lambda, request",
    dollars: 0.2,
    per: "million",
    page: `${aws}/lambda/pricing/`,
    seen: "AWS's page",
  },
  gbSecond: {
    name: "Lambda, duration (Arm)",
    dollars: 0.000_013_333_4,
    per: "GB-second",
    page: `${aws}/lambda/pricing/`,
    seen: "third parties",
  },
  httpApi: {
    name: "API Gateway, HTTP API: request of 512 KB",
    dollars: 1,
    per: "million",
    page: `${aws}/api-gateway/pricing/`,
    seen: "AWS's documentation",
  },
  restApi: {
    name: "API Gateway, REST API: request",
    dollars: 3.5,
    per: "million",
    page: `${aws}/api-gateway/pricing/`,
    seen: "AWS's documentation",
  },
  balancer: {
    name: "Application Load Balancer",
    dollars: 0.0225,
    per: "hour",
    page: `${aws}/elasticloadbalancing/pricing/`,
    seen: "AWS's page",
  },
} as const satisfies Readonly<Record<string, Price>>;

/** Dollars of a million pieces of such work. */
export function dollarsOf({ readUnits, writeUnits, queueRequests, events }: Bill): number {
  return (
    readUnits * prices.read.dollars +
    writeUnits * prices.write.dollars +
    queueRequests.standard * prices.standard.dollars +
    queueRequests.fair * prices.fair.dollars +
    queueRequests.fifo * prices.fifo.dollars +
    events * prices.event.dollars
  );
}
