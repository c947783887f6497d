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
