import { environmentOf, type Variables } from "../../base/process/environment.ts";

/** @throws Error in production and in Lambda, where development features must not start. */
export function refuseInProduction(what: string, env: Variables) {
  const { AWS_LAMBDA_FUNCTION_NAME: name, NODE_ENV } = env;
  if (name !== undefined) {
    throw new Error(
      `${what} is not for Lambda (AWS_LAMBDA_FUNCTION_NAME is ${JSON.stringify(name)}): ` +
        "use the account that the function runs in, or set AWS_ENDPOINT_URL to an emulator's address",
    );
  }
  if (environmentOf(env) === "production") {
    const found = NODE_ENV === undefined ? "not set" : JSON.stringify(NODE_ENV);
    throw new Error(
      `${what} is for development and tests, and NODE_ENV is ${found}: set NODE_ENV=development, ` +
        "or set AWS_ENDPOINT_URL to an emulator's address or AWS credentials and AWS_REGION for a real account",
    );
  }
}
