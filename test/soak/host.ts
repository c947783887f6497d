import { type Agent, type IncomingMessage, request } from "node:http";
import { lambdaEvent } from "../../src/tools/testing/index.ts";
import type { FunctionEnvironment } from "../support/runtime-api.ts";

/** A request of a client. */
export interface SoakRequest {
  readonly method: "GET" | "POST" | "PUT";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** Response to a request. */
export interface SoakAnswer {
  /** 0 without an answer. */
  readonly status: number;
  /** Headers and body. */
  readonly text: string;
  readonly body: string;
  readonly isReplayed: boolean;
}

/** Answers requests: a container, or a function. */
export interface Host {
  readonly kind: "container" | "function";
  send(request: SoakRequest): Promise<SoakAnswer>;
}

const noAnswer: SoakAnswer = { status: 0, text: "", body: "", isReplayed: false };

/** Longer than a drain and every timeout of the server: a missing answer ends the request. */
const answerMs = 60_000;

const json = { "content-type": "application/json" };

/** A container, over connections that one client keeps. */
export function sendToContainer(
  agent: Agent,
  port: number,
  { method, path, headers, body }: SoakRequest,
): Promise<SoakAnswer> {
  return new Promise((resolve) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        method,
        path,
        agent,
        headers: { ...json, ...headers },
        signal: AbortSignal.timeout(answerMs),
      },
      (incoming) => {
        read(incoming).then(
          (text) => resolve(answerOf(incoming.statusCode ?? 0, incoming.headers, text)),
          () => resolve(noAnswer),
        );
      },
    );
    outgoing.on("error", () => resolve(noAnswer));
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** A function behind an HTTP API. */
export async function sendToFunction(
  environment: FunctionEnvironment,
  { method, path, headers, body }: SoakRequest,
): Promise<SoakAnswer> {
  const event = lambdaEvent("httpApi", {
    method,
    path,
    headers: { ...json, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { text, isWhole } = await environment.invoke(event);
  if (!isWhole) return noAnswer;
  const result = JSON.parse(text) as FunctionResult; // safe: Lambda accepts only this form
  // An invocation that failed: API Gateway answers 500 to that.
  if (result.statusCode === undefined) return { ...noAnswer, status: 500, text, body: text };
  return answerOf(result.statusCode, result.headers ?? {}, result.body ?? "");
}

interface FunctionResult {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function answerOf(
  status: number,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  body: string,
): SoakAnswer {
  const isReplayed = headers["idempotent-replayed"] === "true";
  return { status, text: `${JSON.stringify(headers)}\n${body}`, body, isReplayed };
}

async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
