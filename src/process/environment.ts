/** Where a server runs. Decides about stack traces, development secrets and embedded adapters. */
export type Environment = "development" | "test" | "production";

/** Variables of a process, as `process.env` has them. */
export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads the environment from `NODE_ENV`: production unless it is exactly `development` or
 * `test`, because Lambda and Fargate set nothing and must fail closed.
 */
export function environmentOf(variables: Variables): Environment {
  const name = variables["NODE_ENV"];
  return name === "development" || name === "test" ? name : "production";
}

/**
 * Whether a tool restarts the process whenever a source changes: `node --watch` tells the process so itself, for other
 * tools `KEELSON_WATCH=1` does.
 */
export function isWatched(variables: Variables): boolean {
  return variables["WATCH_REPORT_DEPENDENCIES"] !== undefined || variables["KEELSON_WATCH"] === "1";
}
