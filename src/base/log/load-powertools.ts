type Variables = Readonly<Record<string, string | undefined>>;

/** The module that has Powertools decide. */
export type PowertoolsThreshold = typeof import("./powertools-threshold.ts");

/** Loads Powertools where it has anything to decide, for what creates a server's logger. */
export async function loadPowertools(env: Variables): Promise<PowertoolsThreshold | undefined> {
  return isLeftToPowertools(env) ? import("./powertools-threshold.ts") : undefined;
}

/**
 * Whether Powertools has anything to decide: where none of the variables is there that it looks at itself, the level is the
 * one that it would be given. Making a Logger opens both standard streams, which takes 2 ms of a cold start (`lambda-cold`).
 */
export function isLeftToPowertools(env: Variables): boolean {
  const platformLevel = "AWS_LAMBDA_LOG_LEVEL";
  if (env["AWS_LAMBDA_MAX_CONCURRENCY"] || process.env[platformLevel] !== env[platformLevel])
    return true;
  return [env, process.env].some((variables) =>
    Object.keys(variables).some((name) => name.startsWith("POWERTOOLS_")),
  );
}
