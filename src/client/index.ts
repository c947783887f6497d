export type { Logger, LogLevel } from "../log/logger.ts";
export { type ClientLogger, createClientLogger } from "./client-logger.ts";
export type { ClientLoggerOptions } from "./options.ts";
