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
 * Where the embedded stack that stands for AWS keeps its data; `undefined` in production and in Lambda.
 *
 * @param environment - the server's, where it differs from that of the variables
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
 * Whether a tool restarts the process whenever a source changes: `node --watch` tells the process so itself, for other
 * tools `KEELSON_WATCH=1` does.
 */
export function isWatched(variables: Variables): boolean {
  return variables["WATCH_REPORT_DEPENDENCIES"] !== undefined || variables["KEELSON_WATCH"] === "1";
}

/** Whether such a tool is about to start the next process as soon as this one ends. In production nothing is cut short for it. */
export function isReloaded({ environment, variables }: ReloadedProcess): boolean {
  return environment !== "production" && isWatched(variables);
}

/** What {@link isReloaded} asks. */
interface ReloadedProcess {
  readonly environment: Environment;
  readonly variables: Variables;
}
