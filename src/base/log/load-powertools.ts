type Variables = Readonly<Record<string, string | undefined>>;

export type PowertoolsThreshold = typeof import("./powertools-threshold.ts");

export async function loadPowertools(env: Variables): Promise<PowertoolsThreshold | undefined> {
  return isLeftToPowertools(env) ? import("./powertools-threshold.ts") : undefined;
}

/**
 * Whether Powertools may change the level that it receives: only with its variables. Skipping it
 * saves 2 ms of a cold start (`lambda-cold`), because creating a Logger opens both standard
 * streams.
 */
export function isLeftToPowertools(env: Variables): boolean {
  const platformLevel = "AWS_LAMBDA_LOG_LEVEL";
  if (env["AWS_LAMBDA_MAX_CONCURRENCY"] || process.env[platformLevel] !== env[platformLevel])
    return true;
  return [env, process.env].some((variables) =>
    Object.keys(variables).some((name) => name.startsWith("POWERTOOLS_")),
  );
}
