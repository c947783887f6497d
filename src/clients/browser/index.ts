export type { Logger, LogLevel } from "../../base/log/logger.ts";
export { type ClientLogger, createClientLogger } from "./client-logger.ts";
export type { ClientLoggerOptions } from "./options.ts";
