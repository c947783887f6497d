import type { ResponseStream, Streamify } from "./lazy-mode.ts";

/** Global of Lambda's Node runtimes for functions that stream their responses. */
export interface Streaming {
  readonly streamifyResponse: Streamify;
  readonly HttpResponseStream: {
    /** Sends the prelude, status and headers, before the first write. */
    from(stream: ResponseStream, prelude: object): ResponseStream;
  };
}

/** Returns `undefined` outside of Lambda, where functions return their responses. */
export function streaming(): Streaming | undefined {
  // Safe: only Lambda's runtimes set this global, and only to this shape.
  const { awslambda } = globalThis as { readonly awslambda?: Partial<Streaming> };
  return awslambda?.streamifyResponse === undefined ? undefined : (awslambda as Streaming);
}
