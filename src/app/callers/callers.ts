import { type AuthOptions, namesTokens } from "../../base/identity/auth-options.ts";
import {
  type Authenticator,
  type Credentials,
  type Identification,
  saysWho,
} from "../../base/identity/authenticator.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import type { SecretOwner } from "../../parts/api-keys/api-key.ts";
import type { ApiKeys } from "../../parts/api-keys/api-keys.ts";
import type { CorsOptions } from "../../parts/http/cors-options.ts";
import { resolveCaller, unavailable } from "./resolved-caller.ts";

interface CallersOptions {
  readonly auth: AuthOptions;
  readonly cors?: CorsOptions | undefined;
  /** Verifies bearer tokens and the claims of a gateway. */
  readonly tokens: Authenticator;
  readonly apiKeys: Lazy<ApiKeys>;
}

/** Identifies callers by the schemes that a server declares besides tokens. */
export function createCallers({ auth, cors, tokens, apiKeys }: CallersOptions): Authenticator {
  const { resolve } = auth;
  return {
    authenticate: async (credentials) => {
      const sent = auth.apiKeys ? apiKeyOf(credentials) : undefined;
      if (sent === undefined)
        return resolve === undefined || isForTokens(credentials, auth)
          ? tokens.authenticate(credentials)
          : resolveCaller(credentials, { resolve, cors, timeoutMs: auth.resolveTimeoutMs });
      if (countOf(credentials, auth) > 1)
        return refuse("the request has two credentials; send one of them");
      return byApiKey(await verified(apiKeys, sent));
    },
    recognize: async (credentials) => {
      const sent = auth.apiKeys ? apiKeyOf(credentials) : undefined;
      if (sent === undefined) return tokens.recognize(credentials);
      if (countOf(credentials, auth) > 1) return undefined;
      return byApiKey(apiKeys.value?.atHand(sent)).user;
    },
  };
}

/** A bearer token is only for `resolve` if the server verifies none. */
function isForTokens(credentials: Credentials, auth: AuthOptions): boolean {
  if (isNamedByGateway(credentials, auth)) return true;
  return namesTokens(auth) && /^Bearer(?: |$)/i.test(credentials.authorization ?? "");
}

/** Returns the API key of a request, valid or not. */
function apiKeyOf({ authorization, request }: Credentials): string | undefined {
  const bearer = /^Bearer +(kln_\S*)$/i.exec(authorization ?? "")?.[1];
  return bearer ?? request?.headers["x-api-key"];
}

function isNamedByGateway({ gatewayClaims }: Credentials, { claims }: AuthOptions): boolean {
  return gatewayClaims !== undefined && saysWho(gatewayClaims.claims, claims);
}

function countOf(credentials: Credentials, auth: AuthOptions): number {
  const { authorization, request } = credentials;
  const ofGateway = isNamedByGateway(credentials, auth) || undefined;
  const given = [authorization, request?.headers["x-api-key"], ofGateway];
  return given.filter((credential) => credential !== undefined).length;
}

async function verified(apiKeys: Lazy<ApiKeys>, sent: string): Promise<SecretOwner | undefined> {
  try {
    return await (await apiKeys.open()).verify(sent);
  } catch (error) {
    throw unavailable(error);
  }
}

/** Unknown, expired and revoked keys look the same. */
function byApiKey(owner: SecretOwner | undefined): Identification {
  if (owner === undefined) return refuse("the API key is not valid");
  const { id, tenantId, roles } = owner;
  return {
    user: Object.freeze({ id, tenantId, roles: Object.freeze([...roles]), kind: "apiKey" }),
  };
}

function refuse(problem: string): { readonly user: undefined; readonly problem: string } {
  return { user: undefined, problem };
}
