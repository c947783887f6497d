import type { Logger } from "../../base/log/logger.ts";
import { listen } from "./browser-page.ts";

export function captureErrors(log: Logger): () => void {
  const stopErrors = listen("error", ({ error, message }) =>
    log.error("uncaught.error", { error: error ?? message }),
  );
  const stopRejections = listen("unhandledrejection", ({ reason }) =>
    log.error("unhandled.rejection", { error: reason }),
  );
  return () => {
    stopErrors();
    stopRejections();
  };
}
