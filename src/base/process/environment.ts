import { isOnLambda, type Variables } from "./platform.ts";

export type { Variables } from "./platform.ts";

/** Environment of a server. Controls stack traces, development secrets and embedded adapters. */
export type Environment = "development" | "test" | "production";

/**
 * Reads the environment from `NODE_ENV`: production unless it is exactly `development` or `test`,
 * because Lambda and Fargate do not set the variable and must fail closed.
 */
export function environmentOf(variables: Variables): Environment {
  const name = variables["NODE_ENV"];
  return name === "development" || name === "test" ? name : "production";
}

/** Returns the data directory of the embedded stack; `undefined` in production and on Lambda. */
export function embeddedDirectory(
  variables: Variables,
  environment: Environment = environmentOf(variables),
): string | undefined {
  const isLocal = environment !== "production" && !isOnLambda(variables);
  return isLocal ? variables["KEELSON_DIRECTORY"] || ".keelson" : undefined;
}

/** Whether a tool restarts the process after each change: `node --watch`, or `KEELSON_WATCH=1`. */
export function isWatched(variables: Variables): boolean {
  return variables["WATCH_REPORT_DEPENDENCIES"] !== undefined || variables["KEELSON_WATCH"] === "1";
}

/** Whether a tool starts the next process immediately. Never shortens a shutdown in production. */
export function isReloaded({
  environment,
  variables,
}: {
  readonly environment: Environment;
  readonly variables: Variables;
}): boolean {
  return environment !== "production" && isWatched(variables);
}
