import type { StandardSchemaV1 } from "@standard-schema/spec";

/** Symbol that marks outputs that stream, the same in every copy of the package. */
export const streamBrand = Symbol.for("keelson.stream");

/** Server-sent event that a query with `output: sse(schema)` sends. */
export interface SseItem<Data> {
  /** Follows the schema; sent as JSON. */
  readonly data: Data;
  /**
   * ID of the event, which a client that reconnects sends back: see `ctx.request.lastEventId`. May
   * have no line breaks and no NUL.
   */
  readonly id?: string;
  /** Type of the event, without line breaks and NUL. Default `message`. */
  readonly event?: string;
  /** Time after which a client reconnects, in milliseconds. */
  readonly retry?: number;
}

/** Options of {@link sse}. */
export interface SseOptions {
  /**
   * Time without an event after which a comment is sent, so that no proxy closes the connection, in
   * seconds from 1 to 3,600. Default 15.
   */
  readonly heartbeatSeconds?: number;
}

export interface StreamForm {
  readonly kind: "sse" | "jsonLines";
  /** Schema of the data of an event, or of a line. */
  readonly item: StandardSchemaV1;
  readonly heartbeatMs: number;
  /** The problem of the options. */
  readonly problem: string | undefined;
}

/** Output of a query that returns an async iterable, whose items are sent one by one. */
export interface StreamedOutput<Item, Sent>
  extends StandardSchemaV1<AsyncIterable<Item>, AsyncIterable<Sent>> {
  readonly [streamBrand]: StreamForm;
}

/**
 * Output of a query that streams server-sent events: its handler returns an async iterable, such as
 * an async generator, of `{ data, id?, event?, retry? }`. Each `data` is validated like an `output`
 * and sent as JSON. An item that does not match ends the stream with an error. When the process
 * drains or its time limit is near, the stream ends with a `retry`, so that browsers reconnect.
 *
 * @example
 * r.query("order.watch", {
 *   route: "GET /orders/events",
 *   access: access.tenant,
 *   output: sse(z.object({ id: z.string() })),
 *   handler: async function* (ctx) {
 *     for await (const order of ordersAfter(ctx.request?.lastEventId, ctx.signal))
 *       yield { id: order.id, data: order };
 *   },
 * });
 */
export function sse<Data, Sent>(
  schema: StandardSchemaV1<Data, Sent>,
  options: SseOptions = {},
): StreamedOutput<SseItem<Data>, SseItem<Sent>> {
  const { heartbeatSeconds = 15, ...others } = options;
  const [unknown] = Object.keys(others);
  const isTime =
    typeof heartbeatSeconds === "number" && heartbeatSeconds >= 1 && heartbeatSeconds <= 3_600;
  const wrong = isTime ? undefined : "has a `heartbeatSeconds` that is not from 1 to 3,600";
  return streamedOutput({
    kind: "sse",
    item: schema,
    heartbeatMs: heartbeatSeconds * 1_000,
    problem: unknown === undefined ? wrong : `has an unknown option ${JSON.stringify(unknown)}`,
  });
}

/**
 * Output of a query that streams JSON, one value per line (`application/jsonl`): its handler
 * returns an async iterable. Each item is validated like an `output`; one that does not match ends
 * the stream with an error.
 *
 * @example
 * r.query("order.export", {
 *   route: "GET /orders/export",
 *   access: access.tenant,
 *   output: jsonLines(z.object({ id: z.string() })),
 *   handler: (ctx) => allOrders(ctx),
 * });
 */
export function jsonLines<Item, Sent>(
  schema: StandardSchemaV1<Item, Sent>,
): StreamedOutput<Item, Sent> {
  return streamedOutput({
    kind: "jsonLines",
    item: schema,
    heartbeatMs: Number.POSITIVE_INFINITY,
    problem: undefined,
  });
}

/** Without a schema, the result is not a Standard Schema either, which boot reports. */
function streamedOutput<Item, Sent>(form: StreamForm): StreamedOutput<Item, Sent> {
  const validate = (value: unknown) =>
    Symbol.asyncIterator in Object(value)
      ? { value }
      : { issues: [{ message: "is not an async iterable" }] };
  const standard = Object(form.item)["~standard"] && { version: 1, vendor: "keelson", validate };
  // Safe: `validate` returns the iterable that it gets, and items are validated one by one.
  return { "~standard": standard, [streamBrand]: form } as StreamedOutput<Item, Sent>;
}

/** Returns `undefined` for an output that is sent whole. */
export function streamFormOf(output: StandardSchemaV1 | undefined): StreamForm | undefined {
  return (output as Partial<StreamedOutput<unknown, unknown>> | undefined)?.[streamBrand];
}
