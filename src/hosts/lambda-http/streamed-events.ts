import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { errorLog } from "../../base/errors/describe.ts";
import type { HttpResponse } from "../../parts/http/message.ts";
import type { LambdaAnswer, UnreadEvent } from "./codec.ts";
import type { Invocation } from "./execution-mode.ts";
import {
  type AnyHttpEvent,
  type LambdaHttpResult,
  RoutedExchange,
  httpMode as wholeMode,
} from "./http-events.ts";
import type { MiddyFunction, Mode, ResponseStream } from "./lazy-mode.ts";
import { ResponseWriter, type StreamedBody } from "./response-writer.ts";
import { readResult, webStreamOf } from "./result.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "./http-events.ts";

/** Creates the mode of a function that streams its responses. */
export function httpMode(runtime: Runtime, name?: string): Mode {
  return wholeMode(runtime, name, (...given) =>
    isFrontStreaming(given[0].event) ? new StreamedExchange(...given) : new WholeExchange(...given),
  );
}

/** HTTP APIs and load balancers read a whole result from the function's response. */
function isFrontStreaming(event: unknown): boolean {
  const { version, requestContext }: UnreadEvent = Object(event);
  const { domainName, elb } = Object(requestContext) as { readonly [name: string]: unknown };
  return version === "2.0"
    ? String(domainName).includes(".lambda-url.")
    : version === undefined && elb === undefined;
}

/** Lambda calls a function that streams with its stream. */
function writerOf({ stream }: Invocation, whenLeft: (reason: unknown) => void): ResponseWriter {
  return new ResponseWriter(stream as ResponseStream, whenLeft); // safe: see above
}

/** Request of a front that does not stream. */
class WholeExchange extends RoutedExchange {
  override async finish(answer: LambdaAnswer, scope: RequestScope): Promise<void> {
    const result = await super.finish(answer, scope);
    await writerOf(this.invocation, () => undefined).send(Buffer.from(JSON.stringify(result)));
  }
}

class StreamedExchange extends RoutedExchange {
  readonly #writer: ResponseWriter;
  #abort: (reason: unknown) => void = () => undefined;
  /** Body of the handler's response. The middlewares may send another. */
  #content: LambdaAnswer["content"] = undefined;
  /** Response that has started. No other response can replace it. */
  #begun: LambdaAnswer | undefined = undefined;
  #isWhole = false;

  constructor(...given: ConstructorParameters<typeof RoutedExchange>) {
    super(...given);
    this.#writer = writerOf(given[0], (reason) => this.#abort(reason));
  }

  whenLeft(abort: (reason: unknown) => void): void {
    this.#abort = abort;
  }

  override async run(scope: RequestScope, middy: MiddyFunction): Promise<LambdaAnswer> {
    const answer = await super.run(scope, middy);
    scope.signal?.throwIfAborted();
    await this.#send(answer, scope);
    return answer;
  }

  override fail(error: unknown, scope: RequestScope): LambdaAnswer {
    if (this.#begun === undefined) return super.fail(error, scope);
    const isLeft = error instanceof DOMException && error === scope.signal?.reason;
    if (isLeft) scope.log.warn("request.aborted");
    else scope.log.error("response.cut_off", errorLog(error).data);
    return this.#begun;
  }

  override async finish(answer: LambdaAnswer, scope: RequestScope): Promise<void> {
    // A client that has left was reported by the failure of its request.
    if (this.#begun === undefined && !this.#writer.hasLeft)
      await this.#send(answer, scope).catch((error: unknown) => this.fail(error, scope));
    if (!this.#isWhole) this.#writer.destroy();
    const content = this.#content;
    if (content !== undefined && content !== answer.content && "cancel" in content)
      content.cancel().catch(() => undefined); // fails if a middleware has locked it
    scope.runtime.observer?.ended(scope, {
      kind: "request",
      method: this.http.method,
      status: answer.statusCode,
      bytes: this.#writer.bytes,
      isAborted: !this.#isWhole,
    });
  }

  protected override read(result: unknown): LambdaAnswer {
    const content = webStreamOf(Object(result).body);
    if (content === undefined) return super.read(result);
    const answer = readResult({ ...Object(result), body: undefined });
    // The length, if there is one, is of the body that a middleware replaced.
    if (content !== this.#content) delete answer.headers["content-length"];
    return { ...answer, content };
  }

  protected override within(
    answer: LambdaAnswer,
    scope: RequestScope,
    http: AnyHttpEvent,
  ): LambdaHttpResult {
    const { content } = answer;
    this.#content = content;
    const result = super.within(answer, scope, http);
    return content === undefined ? result : Object.assign(result, { body: content });
  }

  protected override fits(): undefined {
    return undefined;
  }

  protected override shaped({ status: statusCode, headers, cookies, body }: HttpResponse) {
    return typeof body === "string" || body === undefined
      ? { statusCode, headers, cookies, body }
      : { statusCode, headers, cookies, body: undefined, content: body };
  }

  async #send(answer: LambdaAnswer, scope: RequestScope): Promise<void> {
    this.#begun = answer;
    const body = bodyOf(answer);
    const { body: _body, isBase64Encoded: _form, ...prelude } = this.write(answer, scope);
    this.#writer.begin(prelude);
    await this.#writer.send(body);
    this.#isWhole = true;
  }
}

function bodyOf({ content, body, isBase64Encoded }: LambdaAnswer): StreamedBody {
  return body === undefined
    ? content
    : Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8");
}
