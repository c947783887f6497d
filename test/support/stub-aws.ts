import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The answer to an operation: a body, an error by its name, or the answer of another endpoint. */
export type StubAnswer =
  | Readonly<Record<string, unknown>>
  | { readonly error: string; readonly message?: string }
  | "forward";

/** An endpoint of AWS with given answers. */
export interface StubAws {
  readonly endpoint: string;
  /** The operations that it was asked for. */
  readonly asked: readonly string[];
  close(): void;
}

/** Options of a stub. */
export interface StubOptions {
  /** Endpoint for operations that it does not know; by default they fail as unknown. */
  readonly target?: string | undefined;
  /** The `Date` of every answer; `""` leaves it out. */
  readonly date?: string;
}

/** Starts a {@link StubAws} on a free port. `"*"` stands for every operation; a function sees the input. */
export async function stubAws(
  answers: Readonly<
    Record<
      string,
      StubAnswer | ((input: Readonly<Record<string, unknown>>) => StubAnswer | undefined)
    >
  >,
  { target, date }: StubOptions = {},
): Promise<StubAws> {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const operation = String(request.headers["x-amz-target"]).split(".").at(-1) ?? "";
    asked.push(operation);
    if (date === "") response.sendDate = false;
    else if (date !== undefined) response.setHeader("date", date);
    const given = answers[operation] ?? answers["*"];
    const answer =
      (typeof given === "function" ? given(JSON.parse(body.toString())) : given) ?? "forward";
    const end = (status: number, text: string) =>
      response.writeHead(status, { "content-type": "application/x-amz-json-1.0" }).end(text);
    if (answer === "forward") {
      if (target === undefined)
        return end(400, JSON.stringify({ __type: "UnknownOperationException" }));
      const {
        host: _host,
        "content-length": _length,
        connection: _connection,
        ...headers
      } = request.headers;
      // Safe: what came as one request goes on as one.
      const forwarded = await fetch(target, {
        method: "POST",
        headers: headers as Record<string, string>,
        body,
      });
      return end(forwarded.status, await forwarded.text());
    }
    if ("error" in answer)
      return end(400, JSON.stringify({ __type: answer.error, message: answer["message"] ?? "" }));
    return end(200, JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // safe: it listens on a port
  return {
    endpoint: `http://127.0.0.1:${port}`,
    asked,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
