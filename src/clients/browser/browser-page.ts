type Listener = (event: {
  readonly error?: unknown;
  readonly message?: unknown;
  readonly reason?: unknown;
}) => void;

/** What is used of a page; a worker has less of it. */
interface Page {
  readonly console?: Record<
    "debug" | "info" | "warn" | "error",
    (...parameters: unknown[]) => void
  >;
  readonly document?: { readonly visibilityState: string };
  addEventListener?(type: string, listener: Listener): void;
  removeEventListener?(type: string, listener: Listener): void;
}

/** The page. Its types are declared here, since the types of a browser would be those of the server's sources too. */
export const page = globalThis as unknown as Page; // safe: each member is looked for before it is used

/** Listens to an event of the page; the returned function stops it. */
export function listen(type: string, listener: Listener): () => void {
  page.addEventListener?.(type, listener);
  return () => page.removeEventListener?.(type, listener);
}
