import type { Logger } from "../../base/log/logger.ts";

export interface RunLog {
  readonly log: Logger;
  readonly logPrefix: "once" | "event" | "job" | "schedule";
}
