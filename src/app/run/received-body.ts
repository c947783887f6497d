import { FrameworkError } from "../../base/errors/errors.ts";
import { readInput } from "../../parts/http/input.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { RouteTable } from "../../parts/http/route-table.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";

/** Body of a request: its bytes, or the form that a middleware parsed. */
interface ReceivedBody {
  readonly bytes: Uint8Array;
  readonly form: Record<string, unknown> | undefined;
}

/** Rejects a compressed body, which would be parsed as if it were plain. */
export function refuseEncoded(request: HttpRequest, bytes: Uint8Array): void {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase();
  if (
    bytes.byteLength > 0 &&
    encoding !== undefined &&
    encoding !== "" &&
    encoding !== "identity"
  ) {
    throw new FrameworkError(
      "unsupported_media_type",
      "The body has a Content-Encoding; send it as it is",
    );
  }
}

export function inputOf(
  { query, method, headers }: HttpRequest,
  { body: kind, input }: HandlerDeclaration,
  params: Record<string, string>,
  { bytes, form }: ReceivedBody,
): Record<string, unknown> {
  const contentType = headers["content-type"];
  return readInput({
    params,
    query,
    contentType,
    bytes,
    form,
    kind,
    method,
    isChecked: input !== undefined,
  });
}

/**
 * Reads the input from the request again, because a schema may have changed the object that it was
 * given. A separate function, used only for writes: a closure in `answer` would move its variables
 * from the stack to the heap (`wrapped-no-log`).
 */
export function rereadInput(
  request: HttpRequest,
  declaration: HandlerDeclaration,
  routes: RouteTable<HandlerDeclaration>,
  basePath: string,
  body: ReceivedBody,
): () => unknown {
  return () => {
    const match = routes.match(request.method, request.path, basePath);
    // Safe: the route matched before.
    return inputOf(
      request,
      declaration,
      (match as Extract<typeof match, { kind: "found" }>).params,
      body,
    );
  };
}
