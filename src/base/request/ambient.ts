import { AsyncLocalStorage, AsyncResource, executionAsyncId } from "node:async_hooks";
import type { Trace } from "./trace.ts";

/** The facts of the current request that code without a `ctx` can read (specification 2.6). */
export interface AmbientContext {
  readonly requestId: string;
  /** `undefined` until the caller is known, and for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  /** `undefined` until the caller is known, and for a caller that is not signed in. */
  readonly userId: string | undefined;
  /** Aborts when the caller disconnects or its time is over; `undefined` if the request has no signal. */
  readonly signal: AbortSignal | undefined;
  /** Its trace. Looked at before the caller is known, it is one of its own unless `trace.incoming` says otherwise. */
  readonly trace: Trace;
}

/** What the framework keeps for one request; only `context` is shown to applications. */
export interface AmbientStore {
  /** Frozen; another one once the caller is known. */
  readonly context: AmbientContext;
  /** The server that handles this request. */
  readonly runtime: {
    /** The physical name of a declared table. */
    readonly tableName: (name: string) => string;
    /** Which versions of projections are active; loaded with the first key of one. */
    readonly projections: { open(): Promise<ActiveVersions> };
  };
  /** The projection that is being written, and its version. */
  projecting?: { readonly name: string; readonly version: number } | undefined;
}

/** Which versions of projections are active. */
export interface ActiveVersions {
  /** The version that a tenant reads. */
  version(name: string, tenantId: string | undefined): Promise<number>;
}

// Not state of the module's own: the storage is empty but for what each run puts in it.
const storage = new AsyncLocalStorage<AmbientStore>();

/**
 * Runs `work` with `store` as its ambient store; concurrent runs never see each other's. What was before is restored by an
 * `AsyncResource`: `storage.run` makes the map of all stores anew for that as well, a tenth of a request's time
 * (`wrapped-no-log` in `bench/results.json`).
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

/** The store of the request being handled, for the framework's own use. */
export function ambientStore(): AmbientStore | undefined {
  return storage.getStore();
}

/**
 * Returns the context of the current request (specification 2.6), or `undefined` outside of a
 * request.
 *
 * @example
 * const requestId = currentContext()?.requestId;
 */
export function currentContext(): AmbientContext | undefined {
  return storage.getStore()?.context;
}
