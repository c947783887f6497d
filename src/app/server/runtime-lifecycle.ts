import type { LifecycleState } from "../../base/process/lifecycle.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** Creates the process state of a runtime. Its host updates the state. */
export function createLifecycle(): Runtime["lifecycle"] {
  const controller = new AbortController();
  // A Lambda function has no lifecycle: it is running whenever it is invoked.
  let state: LifecycleState = "running";
  return {
    get state() {
      return state === "running" && controller.signal.aborted ? "draining" : state;
    },
    draining: controller.signal,
    drain: () => controller.abort(),
    enter: (entered) => {
      state = entered;
    },
  };
}
