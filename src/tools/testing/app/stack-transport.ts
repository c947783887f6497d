import type { Messaging } from "../../../app/runtime/adapters.ts";
import type { StackHere, StackRequest } from "../../../embedded/stack/stack-here.ts";
import type { Client } from "./faults.ts";

/** Middlewares of the SDK that sign, describe or log a request, which the stack ignores. */
const unneeded = [
  ...["httpSigning", "httpAuthScheme", "contentLength", "hostHeader"],
  ...["getUserAgent", "recursionDetection", "logger"],
];

/**
 * Passes the calls of a client to a stack in this process, without a socket.
 *
 * @param outside - runs the stack's own work.
 */
export function sendDirectly(
  client: Client,
  { answer }: Pick<StackHere, "answer">,
  outside = <Result>(work: () => Result): Result => work(),
): void {
  // Safe cast: the middleware passes commands of any client.
  const { middlewareStack } = client as Pick<Messaging["clients"][number], "middlewareStack">;
  for (const name of unneeded) middlewareStack.remove(`${name}Middleware`);
  middlewareStack.add(
    () => (parameters) =>
      // Safe casts: this step has the HTTP request, and returns the HTTP response.
      outside(async () => ({
        response: await answer(parameters.request as StackRequest),
      })) as never,
    { step: "deserialize", priority: "low", name: "keelsonDirectTransport" },
  );
}
