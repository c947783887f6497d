import { AsyncLocalStorage } from "node:async_hooks";
import type { Trace } from "./trace.ts";

/** What is known everywhere while a request is handled, also without `ctx` (specification 2.6). */
export interface AmbientContext {
  readonly requestId: string;
  /** `undefined` until the caller is known, and for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  /** `undefined` until the caller is known, and for a caller that is not signed in. */
  readonly userId: string | undefined;
  /** Aborts when the caller is gone; `undefined` where the request carries none. */
  readonly signal: AbortSignal | undefined;
  /** The trace the request belongs to, where it names one. */
  readonly trace: Trace | undefined;
}

/** What the framework keeps for one request; only `context` is shown to applications. */
export interface AmbientStore {
  /** Frozen; another one once the caller is known. */
  readonly context: AmbientContext;
  /** The physical name of a declared table, for the server that handles this request. */
  readonly tableName: (name: string) => string;
}

// Not state of the module's own: the storage is empty but for what each run puts in it.
const storage = new AsyncLocalStorage<AmbientStore>();

/** Runs `work` with `store` as its ambient store; concurrent runs never see each other's. */
export function runWithStore<Result>(store: AmbientStore, work: () => Result): Result {
  return storage.run(store, work);
}

/** The store of the request being handled, for the framework's own use. */
export function ambientStore(): AmbientStore | undefined {
  return storage.getStore();
}

/**
 * Returns the ambient context of the request being handled (specification 2.6), or
 * `undefined` outside of one.
 *
 * @example
 * const requestId = currentContext()?.requestId;
 */
export function currentContext(): AmbientContext | undefined {
  return storage.getStore()?.context;
}
