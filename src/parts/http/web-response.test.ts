import { expect, test } from "vitest";
import { readResponse, UnreadableResponse } from "./web-response.ts";

test("a query's JSON is read no further once its client is gone, a write's to its end", async () => {
  const client = new AbortController();
  const gone = new Error("gone");
  const cancelled: unknown[] = [];
  const json = (pulls: (controller: ReadableStreamDefaultController<Uint8Array>) => void) => {
    const stream = new ReadableStream<Uint8Array>({
      pull: pulls,
      cancel: (reason) => void cancelled.push(reason),
    });
    return new Response(stream, { headers: { "content-type": "application/json" } });
  };
  const reading = readResponse(
    json(() => {}),
    "query",
    { needsJson: true, signal: client.signal },
  );
  client.abort(gone);

  expect([await reading, cancelled]).toEqual([new UnreadableResponse(gone), [gone]]);
  const late = json(() => {});
  expect(await readResponse(late, "query", { needsJson: true, signal: client.signal })).toEqual(
    new UnreadableResponse(gone),
  );
  expect(cancelled).toEqual([gone, gone]);
  const written = json((controller) => {
    controller.enqueue(Buffer.from("[]"));
    controller.close();
  });
  expect(
    await readResponse(written, "write", { needsJson: true, signal: client.signal }),
  ).toMatchObject({ value: [] });
});
