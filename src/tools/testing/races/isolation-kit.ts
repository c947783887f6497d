import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inspect } from "node:util";
import type { Context } from "aws-lambda";
import type { Server } from "../../../app/server/server.ts";
import { isRecord } from "../../../base/errors/option-table.ts";
import type { GatedCall } from "../app/faults.ts";
import { startWatchedApp, type TestApp, type TestAppOptions } from "../app/test-app.ts";
import { asConcurrentRuntime } from "./invoke-store.ts";
import { takeOutput } from "./output-lines.ts";

/** Caller of one request, each with IDs that are found nowhere else. */
export interface IsolatedCaller {
  /** Number of the request, starting at 0. */
  readonly n: number;
  readonly tenantId: string;
  readonly userId: string;
  readonly requestId: string;
}

/** Function that answers a web `Request`. */
export type IsolatedFetch = (request: Request) => Response | Promise<Response>;

/** Lambda function, called in the same way as Lambda's runtime calls it for concurrent invocations. */
export interface IsolatedLambda<Event> {
  readonly lambda: (event: Event, context: Context) => unknown;
}

/** Scenario of {@link isolationOf}. */
export interface IsolationScenario<Input> extends TestAppOptions {
  /** Makes the request of a caller. All requests are made before the first one is sent. */
  readonly request: (who: IsolatedCaller) => Input | Promise<Input>;
  /** Number of requests. Default 200. */
  readonly count?: number;
}

/** ID of another request in a place in which it must not appear. */
export interface Leak {
  readonly where: "answer" | "line" | "row";
  /** Number of the request that the text belongs to. */
  readonly of: number;
  /** ID of the other request. */
  readonly foreign: string;
  /** Response, log line, or items of the call that stored the row. */
  readonly text: string;
}

/** Requests that {@link isolationOf} found isolated. */
export interface Isolation {
  readonly requests: number;
  /** Requests that were in progress while another one was. */
  readonly overlapped: number;
  /** Log lines of all requests. */
  readonly lines: number;
}

/** Error of {@link isolationOf}, with all leaks. */
export class IsolationError extends Error {
  override readonly name = "IsolationError";
  readonly leaks: readonly Leak[];

  constructor(message: string, leaks: readonly Leak[]) {
    super(message);
    this.leaks = leaks;
  }
}

/** Code that {@link isolationOf} sends requests to. */
export type IsolationTarget = Server | IsolatedFetch | IsolatedLambda<never>;

/** Type of the request that each kind of target takes. */
export type IsolationInput<Target> =
  Target extends IsolatedLambda<infer Event>
    ? { readonly event: Event; readonly context: Context }
    : Target extends IsolatedFetch
      ? Request
      : Parameters<TestApp["fetch"]>;

/**
 * Sends `count` concurrent requests, each of another tenant, and searches each response, log line
 * and stored row for the IDs of other requests. It reads log lines from the console, stdout,
 * stderr and the server's log. While it runs, the requests' lines are not printed.
 *
 * A server runs like in `startTestApp`, and `request` returns the parameters of `app.fetch`; only
 * here, stored rows are searched. For a fetch function, it returns a `Request`. A handler
 * `{ lambda }` gets its `{ event, context }` as from Lambda's runtime for concurrent invocations:
 * `AWS_LAMBDA_MAX_CONCURRENCY` is set, and each call is in `awslambda.InvokeStore.run`.
 *
 * @throws IsolationError if an ID leaked, or no request was in progress while another one was; any
 * error of `request`.
 * @example
 * await isolationOf(server, {
 *   request: ({ tenantId, userId }) => ["/files", { as: { tenantId, id: userId } }],
 * });
 */
export async function isolationOf<Target extends IsolationTarget>(
  target: Target,
  scenario: IsolationScenario<IsolationInput<Target>>,
): Promise<Isolation> {
  const { request, count = 200, ...options } = scenario;
  const watch = new IsolationWatch(count);
  const restore = takeOutput((text) => watch.line(text));
  try {
    // Safe cast: the type of the input follows from the target.
    const inputs = (await Promise.all(watch.callers.map(async (who) => request(who)))) as never[];
    if (typeof target === "function")
      await watch.send(inputs, (n, input) =>
        watch.within(n, async () => textOf(await target(input))),
      );
    else if ("lambda" in target) await sendToFunction(target, watch, inputs);
    else await sendToServer(target, options, watch, inputs);
  } finally {
    restore();
  }
  return watch.result();
}

function sendToFunction(
  { lambda }: IsolatedLambda<never>,
  watch: IsolationWatch,
  inputs: readonly { readonly event: never; readonly context: Context }[],
) {
  return asConcurrentRuntime(inputs.length, (invoke) =>
    watch.send(inputs, (n, { event, context }) =>
      watch.within(n, async () =>
        functionText(await invoke(context, () => lambda(event, context))),
      ),
    ),
  );
}

/** Returns a function's result as a string, with its body decoded. */
function functionText(returned: unknown): string {
  if (!isRecord(returned) || returned["isBase64Encoded"] !== true)
    return String(JSON.stringify(returned));
  const body = Buffer.from(String(returned["body"]), "base64").toString();
  return JSON.stringify({ ...returned, body });
}

/** Tells the server which request it is. */
const numberHeader = "x-keelson-isolated";

async function sendToServer(
  server: Server,
  options: TestAppOptions,
  watch: IsolationWatch,
  inputs: readonly Parameters<TestApp["fetch"]>[],
) {
  const { app } = await startWatchedApp(server, {
    ...options,
    gate: (call, send) => {
      watch.call(call);
      return send();
    },
    following: {
      line: (line) => void watch.line(line),
      request: (message, response, serve) => {
        const ended = new Promise((resolve) => response.once("close", resolve));
        void watch.within(Number(message.headers[numberHeader]), () => {
          serve();
          return ended;
        });
      },
    },
  });
  try {
    await watch.send(inputs, async (n, [path, { headers, ...rest } = {}]) => {
      const sent = { ...headers, [numberHeader]: String(n) };
      return textOf(await app.fetch(path, { ...rest, headers: sent }));
    });
  } finally {
    await app.close();
  }
}

async function textOf(response: Response): Promise<string> {
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`);
  return [response.status, ...headers, await response.text()].join("\n");
}

class IsolationWatch {
  readonly callers: readonly IsolatedCaller[];
  readonly #storage = new AsyncLocalStorage<number>();
  readonly #ids: RegExp;
  readonly #running = new Set<number>();
  readonly #overlapped = new Set<number>();
  readonly #leaks: Leak[] = [];
  #lines = 0;

  constructor(count: number) {
    const nonce = randomBytes(8).toString("hex");
    this.#ids = new RegExp(`(?:tenant|user|request)-${nonce}-(\\d+)-`, "g");
    this.callers = Array.from({ length: count }, (_, n) => {
      const own = `${nonce}-${n}-`;
      return { n, tenantId: `tenant-${own}`, userId: `user-${own}`, requestId: `request-${own}` };
    });
  }

  /** Starts each request in its own turn of the event loop, as separate events would. */
  async send<Input>(
    inputs: readonly Input[],
    one: (n: number, input: Input) => Promise<string>,
  ): Promise<void> {
    const answers: Promise<void>[] = [];
    for (const [n, input] of inputs.entries()) {
      answers.push(
        one(n, input)
          .catch((error: unknown) => inspect(error))
          .then((text) => this.#search("answer", n, text)),
      );
      await nextTurn();
    }
    await Promise.all(answers);
  }

  /** Runs `work` as a part of request `n`. */
  async within<Result>(n: number, work: () => Promise<Result>): Promise<Result> {
    if (this.#running.size > 0) for (const one of [n, ...this.#running]) this.#overlapped.add(one);
    this.#running.add(n);
    try {
      return await this.#storage.run(n, work);
    } finally {
      this.#running.delete(n);
    }
  }

  /** Returns whether the text belongs to a request. */
  line(text: string): boolean {
    const n = this.#storage.getStore();
    if (n === undefined) return false;
    for (const line of text.split("\n")) {
      if (line === "") continue;
      this.#lines += 1;
      this.#search("line", n, line);
    }
    return true;
  }

  call({ operation, input }: GatedCall): void {
    const n = this.#storage.getStore();
    if (n !== undefined && storing.has(operation)) this.#search("row", n, rowsOf(input));
  }

  #search(where: Leak["where"], of: number, text: string): void {
    const found = new Set<string>();
    for (const [id, n] of text.matchAll(this.#ids)) if (Number(n) !== of) found.add(id);
    for (const foreign of found) this.#leaks.push({ where, of, foreign, text });
  }

  result(): Isolation {
    const [requests, leaks] = [this.callers.length, this.#leaks];
    const shown = leaks
      .slice(0, 5)
      .map(({ where, of, foreign, text }) => `${where} of request ${of} has ${foreign}: ${text}`);
    if (leaks.length > 0) {
      const all = [`isolationOf: ${leaks.length} leaks in ${requests} requests`, ...shown];
      throw new IsolationError(all.join("\n"), leaks);
    }
    if (this.#overlapped.size === 0)
      throw new IsolationError(
        `isolationOf: of ${requests} requests none overlapped another, so nothing was tried; let the handler wait for something`,
        [],
      );
    return { requests, overlapped: this.#overlapped.size, lines: this.#lines };
  }
}

const storing = new Set(["PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"]);
const deleting = new Set(["Delete", "DeleteRequest", "ConditionCheck"]);

/** Returns the items that a call stores, with decoded bytes. */
function rowsOf(input: object): string {
  return JSON.stringify(input, function (this: Record<string, unknown>, name, value) {
    const own = this[name];
    if (deleting.has(name)) return undefined;
    return own instanceof Uint8Array ? Buffer.from(own).toString() : value;
  });
}
