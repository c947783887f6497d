import type { Runtime } from "../../../src/app/runtime/runtime.ts";
import type { RequestScope } from "../../../src/app/runtime/scope.ts";
import {
  type Exchange,
  type Invocation,
  scopeMode as modeUnheld,
} from "../../../src/hosts/lambda-http/execution-mode.ts";
import type { HttpExchange } from "../../../src/hosts/lambda-http/http-events.ts";
import type { MiddyFunction, Mode } from "../../../src/hosts/lambda-http/lazy-mode.ts";
import { hold } from "./hold.ts";

export * from "../../../src/hosts/lambda-http/execution-mode.ts";

/** The Lambda host's execution mode, which also compares each result of a server's routes with the document. */
export function scopeMode<Answer>(
  runtime: Runtime,
  open: (invocation: Invocation, middy: MiddyFunction) => Exchange<Answer>,
): Mode {
  return modeUnheld(runtime, (invocation, middy) => {
    const exchange = open(invocation, middy);
    if (!("routes" in exchange)) return exchange; // an adopted handler has no operation in the document
    const { finish } = exchange;
    return Object.assign(exchange, {
      finish: (answer: Answer, scope: RequestScope) => {
        const finished = finish.call(exchange, answer, scope);
        if (finished instanceof Promise) return finished; // a function that streams
        // Safe: what has routes answers HTTP events.
        holdResult(runtime, scope, exchange as unknown as HttpExchange, finished as LambdaResult);
        return finished;
      },
    });
  });
}

/** The members that results of all shapes have. */
interface LambdaResult {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[]>>;
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

function holdResult(
  runtime: Runtime,
  scope: RequestScope,
  { http, headers, hasMiddlewares }: HttpExchange,
  result: LambdaResult,
) {
  let path: string;
  try {
    ({ path } = http.request(headers, scope));
  } catch {
    return; // a middleware has made something else of the event
  }
  const { statusCode: status, body, isBase64Encoded } = result;
  const multiple = Object.entries(result.multiValueHeaders ?? {}).map(
    ([name, values]) => [name, values.join(", ")] as const,
  );
  const all = [...Object.entries(result.headers ?? {}), ...multiple].map(([name, value]) => [
    name.toLowerCase(),
    String(value),
  ]);
  const bytes = isBase64Encoded === true ? Buffer.from(body ?? "", "base64") : body;
  const { handler } = scope;
  const sent = { status, headers: Object.fromEntries(all), body: bytes === "" ? undefined : bytes };
  hold(runtime, { method: http.method, path, handler, hasMiddlewares }, sent);
}
