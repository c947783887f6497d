export type MetricKind = "counter" | "histogram" | "gauge";

/** Declarations whose names are the values of a label. */
export type LabelSource = "routes" | "handlers" | "channels" | "statuses";

/** Allowed values of a label. Any other value becomes {@link otherOf}. */
export type LabelValues = readonly string[] | LabelSource;

export interface MetricDeclaration {
  readonly name: string;
  readonly kind: MetricKind;
  /** UCUM unit: `s` is seconds, `{claim}` a number of claims. */
  readonly unit: string;
  readonly labels: Readonly<Record<string, LabelValues>>;
  /** Dimensions in CloudWatch, where each combination costs money. Default none. */
  readonly dimensions?: readonly string[];
  /** Labels with integer values. Default none. */
  readonly integers?: readonly string[];
  readonly buckets?: readonly number[];
  /** Only host that measures this metric. Default: every host. */
  readonly host?: "container";
  readonly text: string;
}

/** Returns what replaces other values. OpenTelemetry defines it for two labels. */
export function otherOf(label: string): string {
  return label === "http.request.method" || label === "error.type" ? "_OTHER" : "other";
}

/** OpenTelemetry's buckets of `http.server.request.duration`. */
const seconds = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const;
const longSeconds = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400] as const;

const words = (text: string): readonly string[] => text.split(" ");
const methods = words("CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE");
const operations = words(
  "BatchExecuteStatement BatchGetItem BatchWriteItem DeleteItem DescribeTable ExecuteStatement " +
    "GetItem PutItem Query Scan TransactGetItems TransactWriteItems UpdateItem",
);
const storeErrors = words(
  "AbortError ConditionalCheckFailedException InternalServerError " +
    "ProvisionedThroughputExceededException RequestLimitExceeded ResourceNotFoundException " +
    "ThrottlingException TimeoutError TransactionCanceledException TransactionConflictException " +
    "ValidationException",
);
const kinds = ["event", "job", "delivery"] as const;

/** Metrics of keelson. No label identifies a tenant, a user, a key or an ID. */
export const metricList = [
  {
    name: "http.server.request.duration",
    kind: "histogram",
    unit: "s",
    labels: {
      "http.request.method": methods,
      "url.scheme": ["http", "https"],
      "http.route": "routes",
      "http.response.status_code": "statuses",
      "error.type": "statuses",
    },
    dimensions: ["http.route"],
    integers: ["http.response.status_code"],
    buckets: seconds,
    text: "Duration of a request, to the last byte of its response; `error.type` from 500 up; without health checks and scrapes.",
  },
  {
    name: "messaging.process.duration",
    kind: "histogram",
    unit: "s",
    labels: {
      "messaging.system.name": ["aws.sqs"],
      "messaging.operation.name": ["process"],
      "error.type": ["_OTHER"],
      "keelson.kind": kinds,
      "keelson.handler": "handlers",
      "keelson.outcome": ["processed", "failed", "handed-back"],
    },
    dimensions: ["keelson.kind", "keelson.outcome"],
    buckets: seconds,
    text: "Duration of a consumer, job or delivery for one message; `handed-back` if another process is running it.",
  },
  {
    name: "keelson.message.age",
    kind: "histogram",
    unit: "s",
    labels: { "keelson.kind": kinds },
    dimensions: ["keelson.kind"],
    buckets: longSeconds,
    text: "Time that a message spent in its queue before processing started.",
  },
  {
    name: "keelson.message.attempts",
    kind: "histogram",
    unit: "{attempt}",
    labels: { "keelson.kind": kinds },
    dimensions: ["keelson.kind"],
    buckets: [1, 2, 3, 4, 5, 10],
    text: "Number of the attempt, from 1.",
  },
  {
    name: "keelson.schedule.duration",
    kind: "histogram",
    unit: "s",
    labels: { "keelson.handler": "handlers", "keelson.outcome": ["processed", "failed"] },
    dimensions: ["keelson.outcome"],
    buckets: longSeconds,
    text: "Duration of a run of a schedule.",
  },
  {
    name: "keelson.deliveries",
    kind: "counter",
    unit: "{delivery}",
    labels: { "keelson.channel": "channels", "keelson.outcome": ["sent", "failed", "refused"] },
    dimensions: ["keelson.channel", "keelson.outcome"],
    text: "Attempts to send through a channel; `failed` is retried, `refused` never.",
  },
  {
    name: "keelson.dead_letters",
    kind: "counter",
    unit: "{letter}",
    labels: { "keelson.kind": [...kinds, "schedule"] },
    dimensions: ["keelson.kind"],
    text: "Work that is given up: messages in a dead-letter queue, events and jobs that are set aside, schedules that failed too often.",
  },
  {
    name: "keelson.claims",
    kind: "counter",
    unit: "{claim}",
    labels: {
      "keelson.kind": ["write", "message"],
      "keelson.outcome": ["taken", "replayed", "waited", "conflicted", "fenced", "unknown"],
    },
    dimensions: ["keelson.outcome"],
    text: "Outcomes of claims; one that `waited` for a duplicate also counts under its final outcome, and `unknown` may be done or not.",
  },
  {
    name: "keelson.steps",
    kind: "counter",
    unit: "{step}",
    labels: { "keelson.outcome": ["called", "given", "unknown"] },
    dimensions: ["keelson.outcome"],
    text: "Steps that were called, answered from an earlier run, or refused because their result is unknown.",
  },
  {
    name: "keelson.outbox.length",
    kind: "gauge",
    unit: "{row}",
    labels: {},
    text: "Number of overdue events and jobs that the last sweep found.",
  },
  {
    name: "keelson.outbox.age",
    kind: "gauge",
    unit: "s",
    labels: {},
    text: "Age of the oldest overdue event or job; 0 if the outbox had no such row.",
  },
  {
    name: "keelson.config.reads",
    kind: "counter",
    unit: "{read}",
    labels: { "keelson.outcome": ["hit", "miss", "stale"] },
    dimensions: ["keelson.outcome"],
    text: "Reads of configuration rows: from the cache, from the store, or older than allowed because the store fails.",
  },
  {
    name: "keelson.config.age",
    kind: "histogram",
    unit: "s",
    labels: {},
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    text: "Age of rows that came from the cache.",
  },
  {
    name: "db.client.operation.duration",
    kind: "histogram",
    unit: "s",
    labels: {
      "db.system.name": ["aws.dynamodb"],
      "db.operation.name": operations,
      "error.type": storeErrors,
    },
    dimensions: ["db.operation.name"],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
    text: "Duration of a DynamoDB call, including retries; `error.type` if it failed.",
  },
  {
    name: "keelson.rate_limited",
    kind: "counter",
    unit: "{refusal}",
    labels: {},
    text: "Requests that a rate limit refused, and runs whose `ctx.rateLimit` was refused.",
  },
  {
    name: "keelson.wall.hits",
    kind: "counter",
    unit: "{hit}",
    labels: {},
    text: "Commands that were refused because they would have reached rows of another tenant.",
  },
  {
    name: "keelson.drains",
    kind: "counter",
    unit: "{drain}",
    labels: { "keelson.outcome": ["clean", "lossy"] },
    dimensions: ["keelson.outcome"],
    text: "Shutdowns; a `lossy` one has cut something off, or followed an error.",
  },
  {
    name: "nodejs.eventloop.delay.p50",
    kind: "gauge",
    unit: "s",
    labels: {},
    host: "container",
    text: "The median delay of the event loop in the last ten seconds.",
  },
  {
    name: "nodejs.eventloop.delay.p99",
    kind: "gauge",
    unit: "s",
    labels: {},
    host: "container",
    text: "The 99th percentile of the same delay.",
  },
  {
    name: "nodejs.eventloop.delay.max",
    kind: "gauge",
    unit: "s",
    labels: {},
    host: "container",
    text: "The longest delay in the same time.",
  },
] as const satisfies readonly MetricDeclaration[];

export type MetricName = (typeof metricList)[number]["name"];

/** Labels for which callers may pass any string. */
type OpenLabel = "http.request.method" | "db.operation.name" | "error.type";

type ValueOf<Label, Values> = Label extends OpenLabel
  ? string
  : Values extends readonly string[]
    ? Values[number]
    : string;

type LabelsOf<Labels> = {
  readonly [Label in keyof Labels]: ValueOf<Label, Labels[Label]> | undefined;
};

/** All labels of a metric, because an alarm matches only the exact set. `undefined` omits a label. */
export type MetricLabelsOf<Name extends MetricName> = LabelsOf<
  Extract<(typeof metricList)[number], { name: Name }>["labels"]
>;

const unitEnds = new Map([
  ["s", "_seconds"],
  ["ms", "_milliseconds"],
  ["By", "_bytes"],
  ["%", "_percent"],
]);

/** Returns a name by OpenTelemetry's compatibility rules, without repeating a suffix. */
export function prometheusName({
  name,
  kind,
  unit,
}: Pick<MetricDeclaration, "name" | "kind" | "unit">): string {
  const isCounter = kind === "counter";
  const label = prometheusLabel(name);
  const base = isCounter ? label.replace(/_total$/, "") : label;
  const end = unitEnds.get(unit) ?? "";
  return `${base}${base.endsWith(end) ? "" : end}${isCounter ? "_total" : ""}`;
}

export function prometheusLabel(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_]/g, "_");
}
