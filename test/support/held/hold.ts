import type { DeclaredServer } from "../../../src/app/registry/declared-server.ts";
import type { Runtime } from "../../../src/app/runtime/runtime.ts";
import type { HttpResponse } from "../../../src/parts/http/message.ts";

/** Facts about the request of a held response. */
export interface HeldRequest {
  readonly method: string;
  readonly path: string;
  /** The full name of the handler that answered, if one was found. */
  readonly handler: string | undefined;
  /** Whether middlewares of the application's had their hands on the response. */
  readonly hasMiddlewares?: boolean;
}

export type HeldResponse = Pick<HttpResponse, "status" | "headers" | "body">;

/** A response of a server under test. */
export interface Held {
  readonly server: DeclaredServer;
  readonly request: HeldRequest;
  readonly response: HeldResponse;
}

/** A process may load this module more than once, since tests reset modules: all write to the same list. */
const place = Symbol.for("keelson.test.held");
const shared = globalThis as { [place]?: Held[] };

/** Has the responses of this test so far not held: its handlers answer otherwise than they declare, on purpose. */
export function answersOtherwise(_reason: string): void {
  shared[place] = [];
}

/** Keeps a response until the test has ended, and then compares it with its server's document. */
export function hold(
  { server }: Runtime,
  request: HeldRequest,
  { status, headers, body }: HeldResponse,
): void {
  shared[place] ??= [];
  shared[place].push({ server, request, response: { status, headers: { ...headers }, body } });
}

/** The responses since the last time that they were taken. */
export function takeHeld(): Held[] {
  const held = shared[place] ?? [];
  shared[place] = [];
  return held;
}
