import type { Variables } from "../process/environment.ts";

export type PowertoolsThreshold = typeof import("./powertools-threshold.ts");

export async function loadPowertools(env: Variables): Promise<PowertoolsThreshold | undefined> {
  return isLeftToPowertools(env) ? import("./powertools-threshold.ts") : undefined;
}

/**
 * Whether the variables may make Powertools change the level. Not loading it saves 2 ms of a cold
 * start (`lambda-cold`), because a Powertools Logger opens both standard streams.
 */
export function isLeftToPowertools(env: Variables): boolean {
  const platformLevel = "AWS_LAMBDA_LOG_LEVEL";
  if (env["AWS_LAMBDA_MAX_CONCURRENCY"] || process.env[platformLevel] !== env[platformLevel])
    return true;
  return [env, process.env].some((variables) =>
    Object.keys(variables).some((name) => name.startsWith("POWERTOOLS_")),
  );
}
