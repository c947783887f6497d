import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemCode } from "../../base/errors/errors.ts";
import { environmentOf, type Variables } from "../../base/process/environment.ts";
import { isOnLambda } from "../../base/process/platform.ts";
import { createDataDirectory, readIfPresent } from "./data-directory.ts";

/**
 * Returns the secret that signs development tokens: 43 characters, from 32 random bytes. Creates it
 * once for all processes in `<directory>/development-secret`, which only its owner can read.
 *
 * @throws Error in production and on Lambda, and if the file has less than 32 bytes.
 */
export function developmentSecret(directory: string, env: Variables): string {
  refuseInProduction("The development secret", env);
  createDataDirectory(directory);
  return secretInFile(join(directory, "development-secret"));
}

/** Creates a missing file. @throws Error if the file has less than 32 bytes. */
export function secretInFile(path: string) {
  const secret = readIfPresent(path)?.trim() ?? create(path);
  if (Buffer.byteLength(secret) < 32)
    throw new Error(`${path} holds less than 32 bytes: delete it, and a new one is made`);
  return secret;
}

// A link makes the file appear with its whole content, and only the first link succeeds.
function create(path: string) {
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  writeFileSync(draft, randomBytes(32).toString("base64url"), { mode: 0o600, flag: "wx" });
  try {
    linkSync(draft, path);
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  } finally {
    rmSync(draft);
  }
  return readFileSync(path, "utf8").trim();
}

/** @throws Error in production and on Lambda, where development features must not start. */
export function refuseInProduction(what: string, env: Variables) {
  const { NODE_ENV } = env;
  if (isOnLambda(env))
    throw new Error(
      `${what} is not for Lambda, and this process runs in Lambda: ` +
        "use the account that the function runs in, or set AWS_ENDPOINT_URL to an emulator's address",
    );
  if (environmentOf(env) === "production") {
    const found = NODE_ENV === undefined ? "not set" : JSON.stringify(NODE_ENV);
    throw new Error(
      `${what} is for development and tests, and NODE_ENV is ${found}: set NODE_ENV=development, ` +
        "or set AWS_ENDPOINT_URL to an emulator's address or AWS credentials and AWS_REGION for a real account",
    );
  }
}
