import { Logger } from "@aws-lambda-powertools/logger";
import { destination, pino } from "pino";
import { createServerLogger } from "../src/base/log/server-logger.ts";
import { type Result, sideBySide } from "./measure.ts";

/** One line with the context of a request, written to stdout before the call returns. */
export async function lineResults(): Promise<Result[]> {
  const context = {
    requestId: "0191e7a0-5d1c-7000-8000-000000000001",
    tenantId: "acme",
    userId: "ann",
    handler: "files.file.read",
  };
  const data = { id: "f1", maxMb: 77 };
  const ours = createServerLogger({ environment: "production", env: {} }).child(context);
  const powertools = new Logger({ serviceName: "files", persistentKeys: context });
  const pinoLogger = pino(destination({ dest: 1, sync: true })).child(context);
  const write = {
    ours: repeated(() => ours.info("file.read", data)),
    powertools: repeated(() => powertools.info("file.read", data)),
    pino: repeated(() => pinoLogger.info(data, "file.read")),
  };
  const times = 50_000;
  return [
    await sideBySide({
      id: "log-powertools",
      times,
      ours: write.ours,
      peer: write.powertools,
    }),
    await sideBySide({
      id: "log-pino",
      times,
      ours: write.ours,
      peer: write.pino,
    }),
  ];
}

function repeated(write: () => void) {
  return async (times: number) => {
    for (let i = 0; i < times; i++) write();
  };
}
