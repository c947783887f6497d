import { join } from "node:path";
import type { DefectName } from "./defects.ts";
import { secret } from "./server.ts";

/** Environment and observers of every process of the soak. */
export interface ProcessParts {
  readonly env: Readonly<Record<string, string>>;
  readonly onLine: (line: string) => void;
  /** Called for a process that ended, and was not told to. */
  readonly ended: (how: string) => void;
}

/** Environment of a process whose dates follow the soak's clock, with the defect. */
export function environmentOf(
  stack: Readonly<Record<string, string>>,
  endpoint: string,
  clockFile: string,
  defect: DefectName | undefined,
): Record<string, string> {
  const imports = ["stepped-clock.ts", ...(defect === undefined ? [] : ["put-back.ts"])];
  return {
    ...stack,
    AWS_ENDPOINT_URL: endpoint,
    NODE_ENV: "production",
    LOG_FORMAT: "json",
    KEELSON_AUTH_SECRET: secret,
    NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/compiled"),
    NODE_OPTIONS: imports.map((name) => `--import=${join(import.meta.dirname, name)}`).join(" "),
    SOAK_CLOCK: clockFile,
    ...(defect === undefined ? {} : { SOAK_DEFECT: defect }),
  };
}
