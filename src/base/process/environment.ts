/** Environment of a server. Controls stack traces, development secrets and embedded adapters. */
export type Environment = "development" | "test" | "production";

export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads the environment from `NODE_ENV`: production unless it is exactly `development` or `test`,
 * because Lambda and Fargate do not set the variable and must fail closed.
 */
export function environmentOf(variables: Variables): Environment {
  const name = variables["NODE_ENV"];
  return name === "development" || name === "test" ? name : "production";
}

/**
 * Returns the data directory of the embedded stack, which replaces AWS locally. Returns `undefined`
 * in production and in Lambda.
 *
 * @param environment The server's environment if it differs from the variables.
 */
export function embeddedDirectory(
  variables: Variables,
  environment: Environment = environmentOf(variables),
): string | undefined {
  const isLocal =
    environment !== "production" && variables["AWS_LAMBDA_FUNCTION_NAME"] === undefined;
  return isLocal ? variables["KEELSON_DIRECTORY"] || ".keelson" : undefined;
}

/**
 * Whether a tool restarts the process after each source change. `node --watch` sets a variable for
 * this; for other tools, set `KEELSON_WATCH=1`.
 */
export function isWatched(variables: Variables): boolean {
  return variables["WATCH_REPORT_DEPENDENCIES"] !== undefined || variables["KEELSON_WATCH"] === "1";
}

/**
 * Whether a tool starts the next process as soon as this process ends. `false` in production, so
 * that no shutdown is shortened there.
 */
export function isReloaded({ environment, variables }: ReloadedProcess): boolean {
  return environment !== "production" && isWatched(variables);
}

interface ReloadedProcess {
  readonly environment: Environment;
  readonly variables: Variables;
}
