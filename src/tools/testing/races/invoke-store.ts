import { AsyncLocalStorage } from "node:async_hooks";
import { replaced } from "./replaced.ts";

type Invocation = Record<PropertyKey, unknown>;

const keys = {
  REQUEST_ID: Symbol.for("_AWS_LAMBDA_REQUEST_ID"),
  X_RAY_TRACE_ID: Symbol.for("_AWS_LAMBDA_X_RAY_TRACE_ID"),
  TENANT_ID: Symbol.for("_AWS_LAMBDA_TENANT_ID"),
};

/** Creates the `InvokeStore` of Lambda's runtime for concurrent invocations. */
function createInvokeStore() {
  const storage = new AsyncLocalStorage<Invocation>();
  const get = (key: PropertyKey): unknown => storage.getStore()?.[key];
  return {
    PROTECTED_KEYS: keys,
    run: <Result>(invocation: Invocation, work: () => Result) => storage.run(invocation, work),
    getContext: () => storage.getStore(),
    hasContext: () => storage.getStore() !== undefined,
    get,
    set: (key: PropertyKey, value: unknown) => {
      const invocation = storage.getStore();
      if (invocation === undefined) throw new Error("No context available");
      invocation[key] = value;
    },
    getRequestId: () => get(keys.REQUEST_ID) ?? "-",
    getXRayTraceId: () => get(keys.X_RAY_TRACE_ID),
    getTenantId: () => get(keys.TENANT_ID),
  };
}

type Invoke = <Result>(
  context: { readonly awsRequestId: string; readonly tenantId?: string | undefined },
  work: () => Result,
) => Result;

/** Does `work` in a process that looks like Lambda's runtime for `count` concurrent invocations. */
export async function asConcurrentRuntime(
  count: number,
  work: (invoke: Invoke) => Promise<void>,
): Promise<void> {
  // Safe cast: Lambda's runtime defines this name.
  const { awslambda } = globalThis as { readonly awslambda?: object };
  const InvokeStore = createInvokeStore();
  const restore = replaced(
    [process.env, "AWS_LAMBDA_MAX_CONCURRENCY", String(count)],
    [globalThis, "awslambda", { ...awslambda, InvokeStore }],
  );
  try {
    await work(({ awsRequestId, tenantId }, invocation) =>
      InvokeStore.run({ [keys.REQUEST_ID]: awsRequestId, [keys.TENANT_ID]: tenantId }, invocation),
    );
  } finally {
    restore();
  }
}
