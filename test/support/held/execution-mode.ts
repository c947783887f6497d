import type { Runtime } from "../../../src/app/runtime/runtime.ts";
import type { RequestScope } from "../../../src/app/runtime/scope.ts";
import type { ScopeFacts } from "../../../src/app/runtime/scoped-run.ts";
import {
  type EventCodec,
  scopeMode as modeUnheld,
} from "../../../src/hosts/lambda-http/execution-mode.ts";
import type { HttpFacts } from "../../../src/hosts/lambda-http/http-events.ts";
import type { ExecutionMode } from "../../../src/hosts/lambda-http/middleware.ts";
import { hold } from "./hold.ts";

export type * from "../../../src/hosts/lambda-http/execution-mode.ts";

/** The Lambda host's own, with each result of a server's routes held against the document as it is returned. */
export function scopeMode<Event, Result, Facts extends ScopeFacts>(
  runtime: Runtime,
  codec: EventCodec<Event, Result, Facts>,
): ExecutionMode {
  if (codec.handle === undefined) return modeUnheld(runtime, codec); // an adopted handler has no operation in the document
  return modeUnheld(runtime, {
    ...codec,
    finish: (result, scope, facts) => {
      const finished = codec.finish(result, scope, facts);
      // Safe: what has `handle` answers HTTP events.
      holdResult(runtime, scope, facts as unknown as HttpFacts, finished as LambdaResult);
      return finished;
    },
  });
}

/** What the results of all shapes have between them. */
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
  { shape, event, method, headers }: HttpFacts,
  result: LambdaResult,
) {
  let path: string;
  try {
    ({ path } = shape.request(event, headers, scope));
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
  const { handler, hasMiddlewares } = scope;
  const sent = { status, headers: Object.fromEntries(all), body: bytes === "" ? undefined : bytes };
  hold(runtime, { method, path, handler, hasMiddlewares }, sent);
}
