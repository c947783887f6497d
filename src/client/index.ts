export type { Logger, LogLevel } from "../log/logger.ts";
export { type ClientLogger, type ClientLoggerOptions, createClientLogger } from "./client-logger.ts";
