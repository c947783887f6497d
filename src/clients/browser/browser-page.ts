type Listener = (event: {
  readonly error?: unknown;
  readonly message?: unknown;
  readonly reason?: unknown;
}) => void;

/** The globals of a page that the logger uses. Workers lack some members. */
interface Page {
  readonly console?: Record<
    "debug" | "info" | "warn" | "error",
    (...parameters: unknown[]) => void
  >;
  readonly document?: { readonly visibilityState: string };
  addEventListener?(type: string, listener: Listener): void;
  removeEventListener?(type: string, listener: Listener): void;
}

/** Typed by hand, because the browser's types would also apply to the server's sources. */
export const page = globalThis as unknown as Page; // safe: each member is checked before use

export function listen(type: string, listener: Listener): () => void {
  page.addEventListener?.(type, listener);
  return () => page.removeEventListener?.(type, listener);
}
