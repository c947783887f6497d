import type { Variables } from "../../base/process/environment.ts";
import type { SigningCredentials } from "./signature.ts";

export interface LeanSettings {
  readonly endpoint: URL;
  readonly region: string;
  readonly credentials: SigningCredentials;
}

/** Variables that change the endpoint or credentials in a way that only the SDK implements. */
export const onlyForSdk = [
  "AWS_ACCOUNT_ID",
  "AWS_ACCOUNT_ID_ENDPOINT_MODE",
  "AWS_AUTH_SCHEME_PREFERENCE",
  "AWS_CONFIG_FILE",
  "AWS_CREDENTIAL_EXPIRATION",
  "AWS_CREDENTIAL_SCOPE",
  "AWS_DEFAULTS_MODE",
  "AWS_ENABLE_DEFAULT_SOCKET_TIMEOUT_2026",
  "AWS_ENABLE_ENDPOINT_DISCOVERY",
  "AWS_ENDPOINT_DISCOVERY_ENABLED",
  "AWS_PROFILE",
  "AWS_SHARED_CREDENTIALS_FILE",
  "AWS_SIGV4A_SIGNING_REGION_SET",
  "AWS_USE_DUALSTACK_ENDPOINT",
  "AWS_USE_FIPS_ENDPOINT",
] as const;

const plainRegion = /^(?:us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d+$/;

/**
 * Settings of a Lambda function; `undefined` if the SDK might use others: because of
 * {@link onlyForSdk}, configuration files, another partition or other credentials.
 */
export function leanSettings(variables: Variables, hasFile = fileExists): LeanSettings | undefined {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN,
  } = variables;
  const region = variables["AWS_REGION"] || variables["AWS_DEFAULT_REGION"] || "";
  if (!accessKeyId || !secretAccessKey || !plainRegion.test(region)) return undefined;
  if (onlyForSdk.some((name) => variables[name])) return undefined;
  const home = variables["HOME"] || process.getBuiltinModule("node:os").homedir();
  if (hasFile(`${home}/.aws/config`) || hasFile(`${home}/.aws/credentials`)) return undefined;
  const given = variables["AWS_ENDPOINT_URL_DYNAMODB"] || variables["AWS_ENDPOINT_URL"];
  const endpoint = given
    ? plainEndpoint(given)
    : new URL(`https://dynamodb.${region}.amazonaws.com`);
  if (endpoint === undefined) return undefined;
  return {
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey, sessionToken: AWS_SESSION_TOKEN || undefined },
  };
}

function plainEndpoint(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`
    ? url
    : undefined;
}

function fileExists(path: string): boolean {
  return process.getBuiltinModule("node:fs").existsSync(path);
}
