import { AsyncLocalStorage, AsyncResource, executionAsyncId } from "node:async_hooks";
import type { Trace } from "./trace.ts";

/** Request data available to code without a `ctx` (specification 2.6). */
export interface AmbientContext {
  readonly requestId: string;
  /** Tenant of the caller, `undefined` until it is identified and if it is not signed in. */
  readonly tenantId: string | undefined;
  /** ID of the caller, `undefined` until it is identified and if it is not signed in. */
  readonly userId: string | undefined;
  /**
   * Aborts when the caller disconnects or the request times out. `undefined` in events, jobs and
   * schedules.
   */
  readonly signal: AbortSignal | undefined;
  /**
   * Trace of the request. Before the caller is identified, a new trace unless `trace.incoming`
   * says otherwise.
   */
  readonly trace: Trace;
}

interface Encrypted {
  readonly key: string;
  readonly data: Uint8Array;
}

/** Encrypts cursors with the key ring. */
export interface CursorSecrets {
  mayHaveRing(): boolean;
  sealPassing(text: string, place: readonly string[]): Promise<Encrypted>;
  prepare(key: string): Promise<void> | undefined;
  open(
    sealed: Encrypted & { readonly sealed: number },
    place: readonly string[],
  ): { readonly text: string } | { readonly locked: string };
}

/** Applications see only `context`. */
export interface AmbientStore {
  /** Frozen object, replaced when the caller is identified. */
  readonly context: AmbientContext;
  readonly runtime: {
    readonly tableName: (name: string) => string;
    readonly secrets: CursorSecrets;
    /** Active versions of projections, loaded when a projection first needs them. */
    readonly projections: { open(): Promise<ActiveVersions> };
  };
  /** With `log.cost`: the consumption of the run so far. */
  cost?: RunCost | undefined;
  projecting?: { readonly name: string; readonly version: number } | undefined;
}

/** Consumption of a run: DynamoDB's request units, and the bytes of sent events and messages. */
export interface RunCost {
  readUnits: number;
  writeUnits: number;
  messageBytes: number;
}

export interface ActiveVersions {
  version(name: string, tenantId: string | undefined): Promise<number>;
}

// No module-level state: it only holds the store of each run.
const storage = new AsyncLocalStorage<AmbientStore>();

/**
 * Runs `work` with `store` as its ambient store. An `AsyncResource` restores the previous store,
 * because `storage.run` would also copy the map of all stores, a tenth of a request's time
 * (`wrapped-no-log` in `bench/results.json`).
 */
export function runWithStore<Store extends AmbientStore, Result>(
  store: Store,
  work: (store: Store) => Result,
): Result {
  const resource = new AsyncResource("keelson", executionAsyncId());
  return resource.runInAsyncScope(entered<Store, Result>, undefined, store, work);
}

function entered<Store extends AmbientStore, Result>(
  store: Store,
  work: (store: Store) => Result,
): Result {
  storage.enterWith(store);
  return work(store);
}

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
