import { AsyncLocalStorage, AsyncResource, executionAsyncId } from "node:async_hooks";
import type { Trace } from "./trace.ts";

/** Request data available to code without a `ctx` (specification 2.6). */
export interface AmbientContext {
  readonly requestId: string;
  /** `undefined` until the caller is identified, and for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  /** `undefined` until the caller is identified, and for a caller that is not signed in. */
  readonly userId: string | undefined;
  /**
   * Aborts when the caller disconnects or the request times out; `undefined` if the request has no
   * signal.
   */
  readonly signal: AbortSignal | undefined;
  /**
   * The trace of the request. If read before the caller is identified, it is a new trace unless
   * `trace.incoming` changes that.
   */
  readonly trace: Trace;
}

/** Framework data of one request. Applications only see `context`. */
export interface AmbientStore {
  /** Frozen. Replaced when the caller is identified. */
  readonly context: AmbientContext;
  readonly runtime: {
    /** Returns the physical name of a declared table. */
    readonly tableName: (name: string) => string;
    /** Active versions of projections, loaded with the first key of a projection. */
    readonly projections: { open(): Promise<ActiveVersions> };
  };
  /** Name and version of the projection that is being written. */
  projecting?: { readonly name: string; readonly version: number } | undefined;
}

export interface ActiveVersions {
  version(name: string, tenantId: string | undefined): Promise<number>;
}

// Not module state: the storage only holds the store of each run.
const storage = new AsyncLocalStorage<AmbientStore>();

/**
 * Runs `work` with `store` as its ambient store. Concurrent runs never see each other's store. An
 * `AsyncResource` restores the previous store: `storage.run` would also copy the map of all stores,
 * which takes a tenth of a request's time (`wrapped-no-log` in `bench/results.json`).
 */
export function runWithStore<Store extends AmbientStore, Result>(
  store: Store,
  work: (store: Store) => Result,
): Result {
  const resource = new AsyncResource("keelson", executionAsyncId());
  return resource.runInAsyncScope<undefined, Result>(
    entered<Store, Result>,
    undefined,
    store,
    work,
  );
}

function entered<Store extends AmbientStore, Result>(
  store: Store,
  work: (store: Store) => Result,
): Result {
  storage.enterWith(store);
  return work(store);
}

/** Returns the store of the current request. For internal use by the framework. */
export const ambientStore: () => AmbientStore | undefined = storage.getStore.bind(storage);

/**
 * Returns the context of the current request (specification 2.6), or `undefined` outside a request.
 *
 * @example
 * const requestId = currentContext()?.requestId;
 */
export function currentContext(): AmbientContext | undefined {
  return storage.getStore()?.context;
}
