// The same answers by functions that use nothing but Lambda's runtime.
const chunkMs = 20;
const pause = () => new Promise((resolve) => setTimeout(resolve, chunkMs));

interface Event {
  readonly path?: string;
  readonly rawPath?: string;
}
interface Stream {
  write(text: string): boolean;
  end(): void;
}
interface Runtime {
  streamifyResponse(
    handler: (event: Event, stream: Stream) => Promise<void>,
  ): (event: Event) => Promise<unknown>;
  readonly HttpResponseStream: { from(stream: Stream, prelude: object): Stream };
}

// Safe: Lambda's runtime sets it.
const { awslambda } = globalThis as unknown as { readonly awslambda: Runtime };
const json = { "content-type": "application/json; charset=utf-8" };
const text = { "content-type": "text/plain" };

export async function whole(event: Event): Promise<object> {
  const path = event.path ?? event.rawPath ?? "";
  if (path !== "/stream") return { statusCode: 200, headers: json, body: JSON.stringify({ path }) };
  let body = "";
  for (let n = 0; n < 5; n++) {
    if (n > 0) await pause();
    body += `${n}\n`;
  }
  return { statusCode: 200, headers: text, body };
}

export const streaming = awslambda.streamifyResponse(async (event, given) => {
  const path = event.path ?? event.rawPath ?? "";
  const isStream = path === "/stream";
  const stream = awslambda.HttpResponseStream.from(given, {
    statusCode: 200,
    headers: isStream ? text : json,
  });
  if (isStream)
    for (let n = 0; n < 5; n++) {
      if (n > 0) await pause();
      stream.write(`${n}\n`);
    }
  else stream.write(JSON.stringify({ path }));
  stream.end();
});
