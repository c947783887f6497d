import { type Sender, serve as serveUnheld } from "../../../src/app/run/pipeline.ts";
import type { HttpRequest } from "../../../src/parts/http/message.ts";
import { hold } from "./hold.ts";

// By name: a star has its names only once its module has run, which is too late for one that is loaded at the same time.
export {
  answer,
  authorize,
  finish,
  type Sender,
} from "../../../src/app/run/pipeline.ts";

/** The pipeline's own, with each response held against the document on its way to the container's sender. */
export function serve(
  server: Parameters<typeof serveUnheld>[0],
  request: HttpRequest,
  sender: Sender,
): Promise<void> {
  const { method, path } = request;
  return serveUnheld(server, request, {
    send(response, scope) {
      hold(server.runtime, { method, path, handler: scope.handler }, response);
      return sender.send(response, scope);
    },
  });
}
